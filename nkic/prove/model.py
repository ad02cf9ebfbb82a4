"""What the proofs work on: streams of items with raw waits and signals, and what each of them
touches, as areas of storage with addresses. Made from a schedule, or from the records of a file.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.source import CallChain
from nkic.machine.engines import Engine
from nkic.machine.operands import Row

RULES = {
    "address": "a tensor on chip has an address, inside its memory",
    "lane": "what uses the state of an engine's lanes is in the partitions that the kernel chose",
    "overlap": "no two tensors in use at the same time share a byte",
    "once": "each instruction is there exactly once, on its engine and in its loops",
    "semaphore": "a semaphore has one signaller and one waiter, and a loop leaves it as it was",
    "deadlock": "every stream comes to its end",
    "memory": "conflicting accesses to a tensor are ordered as in the program",
    "bytes": "who takes over bytes waits for everything that their former owner does",
    "state": "conflicting uses of engine state are ordered as in the program",
    "register": "conflicting uses of a register are ordered as in the program, decisions of loops"
    " included",
    "user": "an instruction waits for those that the kernel ordered before it",
    "pin": "a no_reorder region keeps the order of the program",
    "spilled": "with spilled tiles every instruction finds the values that it finds without "
    "spilling",
    "returned": "what the kernel returns is written",
    "file": "the bytes of the file hold the program that was proven",
}


class Finding(NamedTuple):
    """A proof that failed: which of `RULES`, what is wrong, and where."""

    rule: str
    what: str
    at: CallChain | None = None

    def __str__(self) -> str:
        where = f" at {self.at.span}" if self.at is not None else ""
        return f"{self.what}{where} ({self.rule})"


Range = tuple[int, int]
Box = tuple[Range, ...]  # half-open, per axis; the innermost in bytes


class Storage(NamedTuple):
    """Where the tensor of that number lies on chip. `bytes` are those of one partition."""

    key: int
    memory: str
    partition: int
    byte: int
    partitions: int
    bytes: int


class Item(NamedTuple):
    """An item of a stream: first it waits, in the end it signals. `key` is the instruction's
    number, -1 for an empty slot. `meets`: the row, if all cores run it together.
    """

    key: int
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    meets: Row | None = None


class Round(NamedTuple):
    """A device loop as one stream sees it. `bounds` are registers that the stream reads when it
    enters, `condition` one that it reads before every iteration, -1 for none.
    """

    loop: int
    bounds: tuple[int, ...]
    condition: int
    items: tuple[Item | Round, ...]


class Line(NamedTuple):
    """A stream of one core. Transfers of a DMA queue start while earlier ones are under way."""

    engine: Engine
    queue: int
    items: tuple[Item | Round, ...]

    @property
    def in_order(self) -> bool:
        """An item finds the results of those before it: compute engines interlock."""
        return self.engine is not Engine.DMA

    @property
    def name(self) -> str:
        """As `StreamId` prints it."""
        return f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value


READ, WRITE, UPDATE = 1, 2, 3
