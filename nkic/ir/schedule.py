"""Schedule: the program as streams, one per engine and DMA queue, ordered by semaphores.

A stream runs its items in order. An item first waits: for each (semaphore, amount) it blocks
until the semaphore has at least `amount`, then takes that off. When the item is complete it
adds 1 to each semaphore it signals. A semaphore belongs to one signalling and one waiting
stream, so counts never depend on who comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.ir.program import Instruction, Loop, Program
from nkic.machine.engines import Engine


class StreamId(NamedTuple):
    """Who runs it: the engine, and the queue number for DMA (0 for the others)."""

    engine: Engine
    queue: int = 0

    def __str__(self) -> str:
        return f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value


class Wait(NamedTuple):
    semaphore: int
    amount: int


class Slot(NamedTuple):
    """An instruction in its place, or None: an empty slot that only waits and signals."""

    instruction: Instruction | None
    waits: tuple[Wait, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True)
class StreamLoop:
    """A device loop as one stream sees it: its own items of the loop's body."""

    loop: Loop
    items: tuple[StreamItem, ...]


StreamItem = Slot | StreamLoop


@dataclass(frozen=True)
class Stream:
    id: StreamId
    items: tuple[StreamItem, ...]


@dataclass(frozen=True)
class Schedule:
    """A program with its streams, one tuple of streams per core. Semaphores are numbered per
    core. `estimate_ns` is the compiler's own prediction of the run time, with `is_timed` to the
    picosecond what a run takes; `busiest_ns` is how long the busiest engine takes by itself, where
    that is known. With `serial` nothing overlaps.
    """

    program: Program
    cores: tuple[tuple[Stream, ...], ...]
    estimate_ns: float = 0.0
    serial: bool = False
    is_timed: bool = field(default=False, compare=False)  # no part of what a schedule is
    busiest_ns: float = field(default=0.0, compare=False)


def slots(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    """Every slot, loop bodies included once."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            yield from slots(item.items)
