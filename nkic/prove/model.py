"""The data of the proofs: streams of items with raw waits and signals, and storage areas.

They are made from a schedule, or from the records of a file.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.source import CallChain
from nkic.machine.operands import Row
from nkic.machine.targets import Engine

RULES = {
    "lowered": "every recorded instruction is lowered once, in its place, to the same attributes,"
    " elements and accumulation",
    "address": "a tensor on chip has an address, inside its memory",
    "lane": "a tensor used with the state of an engine's lanes keeps the kernel's partitions",
    "overlap": "no two tensors in use at the same time share a byte",
    "once": "each instruction is in the streams exactly once, on its engine and in its loops",
    "semaphore": "a semaphore has one signaller and one waiter, and a loop keeps its count",
    "deadlock": "every stream runs to its end",
    "memory": "conflicting accesses to a tensor are ordered as in the program",
    "bytes": "a tensor that takes over bytes waits for all accesses of their former owner",
    "state": "conflicting uses of engine state are ordered as in the program",
    "register": "conflicting uses of a register are ordered as in the program, including the"
    " decisions of loops",
    "user": "an instruction waits for those that the kernel ordered before it",
    "pin": "a no_reorder region keeps program order",
    "spilled": "with spilled tiles, every instruction reads the values that it reads "
    "without spilling",
    "file": "the bytes of the file hold the program that was proven",
}


class Finding(NamedTuple):
    """A failed proof: one of `RULES`, what is wrong, and where."""

    rule: str
    what: str
    at: CallChain | None = None

    def __str__(self) -> str:
        location = f" at {self.at.span}" if self.at is not None else ""
        return f"{self.what}{location} ({self.rule})"


Range = tuple[int, int]
Box = tuple[Range, ...]  # half-open, per axis; the innermost in bytes


class Storage(NamedTuple):
    """The on-chip address of tensor `key`. `bytes` are those of one partition."""

    key: int
    memory: str
    partition: int
    byte: int
    partitions: int
    bytes: int


class Item(NamedTuple):
    """An item of a stream: it waits before it starts and signals when it completes.

    `key` is the instruction's number, or -1 for an empty slot. `rendezvous_row` is the row if
    all cores run it together.
    """

    key: int
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    rendezvous_row: Row | None = None


class Round(NamedTuple):
    """A device loop as one stream sees it.

    The stream reads the registers `bounds` on entry and the register `condition` before every
    iteration; -1 for none.
    """

    loop: int
    bounds: tuple[int, ...]
    condition: int
    items: tuple[Item | Round, ...]


class Line(NamedTuple):
    """A stream of one core. Transfers of a DMA queue start while earlier ones are in flight."""

    engine: Engine
    queue: int
    items: tuple[Item | Round, ...]

    @property
    def in_order(self) -> bool:
        """Whether an item sees the results of earlier items: compute engines interlock."""
        return self.engine is not Engine.DMA

    @property
    def name(self) -> str:
        """The name of the stream, as `StreamId` prints it."""
        return f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value


READ, WRITE, UPDATE = 1, 2, 3
