"""Schedule: the program as streams, one per engine and DMA queue, ordered by semaphores.

A stream runs its items in order. An item first waits: for each (semaphore, amount), it blocks until
the semaphore is at least `amount`, then subtracts it. On completion it adds 1 to each semaphore it
signals. Each semaphore has one signalling and one waiting stream, so counts do not depend on the
order in which streams run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.ir.program import Instruction, Loop, Program
from nkic.machine.engines import Engine


class StreamId(NamedTuple):
    """The engine that runs a stream, and its DMA queue (0 for other engines)."""

    engine: Engine
    queue: int = 0

    def __str__(self) -> str:
        return f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value


class Wait(NamedTuple):
    semaphore: int
    amount: int


class Slot(NamedTuple):
    """An instruction in a stream; None makes an empty slot that only waits and signals."""

    instruction: Instruction | None
    waits: tuple[Wait, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True)
class StreamLoop:
    """One stream's part of a device loop: its own items of the loop's body."""

    loop: Loop
    items: tuple[StreamItem, ...]


StreamItem = Slot | StreamLoop


@dataclass(frozen=True)
class Stream:
    id: StreamId
    items: tuple[StreamItem, ...]


@dataclass(frozen=True)
class Schedule:
    """A program and its streams, one tuple of streams per core.

    Semaphores are numbered per core. `estimate_ns` is the compiler's prediction of the run time; if
    `is_timed`, it is exactly (to the picosecond) the simulated time of a run. `busiest_ns` is the
    time that the busiest engine needs by itself, if known. With `serial`, no instructions overlap.
    """

    program: Program
    cores: tuple[tuple[Stream, ...], ...]
    estimate_ns: float = 0.0
    serial: bool = False
    is_timed: bool = field(default=False, compare=False)  # not part of a schedule's identity
    busiest_ns: float = field(default=0.0, compare=False)


def slots(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    """Yield every slot, loop bodies included once."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            yield from slots(item.items)
