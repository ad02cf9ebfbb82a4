"""Dependences between events: which event needs another's data, and which waits for memory.

Accesses are approximated by boxes of partitions and of bytes in each partition, from the first byte
that a pattern touches to the last. On chip these are physical addresses, so a tensor that reuses
the bytes of another waits for memory. In HBM only tensors that the kernel both writes and reads
matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.trace import Trace


class Relation(Enum):
    """Why one event waits for another."""

    DATA = "data"  # reads what the other writes
    MEMORY = "memory"  # overwrites what the other still uses
    ORDER = "order"  # neither is known: a loop's barrier, a queue's order

    __hash__ = object.__hash__


class Box(NamedTuple):
    """A box of bytes: memory (core and buffer, or a tensor in HBM), partitions, bytes of each
    partition.
    """

    memory: tuple[int, str]
    first: int
    last: int  # one past
    low: int
    high: int  # one past

    def overlaps(self, other: Box) -> bool:
        """Whether the boxes share a byte."""
        return (
            self.memory == other.memory
            and self.first < other.last
            and other.first < self.last
            and self.low < other.high
            and other.low < self.high
        )

    def covers(self, other: Box) -> bool:
        """Whether `other` is inside this box."""
        return (
            self.first <= other.first
            and other.last <= self.last
            and self.low <= other.low
            and other.high <= self.high
        )


class Use(NamedTuple):
    """An operand of an instruction, with its bytes."""

    box: Box
    tensor: int
    pattern: PatternRecord
    reads: bool
    writes: bool


class Uses:
    """The memory accesses of instructions, memoised per record."""

    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable = executable
        self.target = target
        self._known: dict[int, tuple[Use, ...]] = {}
        self._products: dict[int, int] = {}

    def products(self, record: InstructionRecord, engine: Engine) -> int:
        """Return the additions and multiplications of a matrix product."""
        count = self._products.get(id(record))
        if count is None:
            row = record.row
            facts = self.executable.facts(record, self.target, engine)
            count = row.operations(facts) if row is not None and row.operations else 0
            self._products[id(record)] = count
        return count

    def of(self, record: InstructionRecord, engine: Engine, core: int) -> tuple[Use, ...]:
        """Return the accesses of an instruction on that stream; none for an empty slot."""
        uses = self._known.get(id(record))
        if uses is None:
            uses = self._known[id(record)] = tuple(self._uses(record, engine, core))
        return uses

    def _uses(self, record: InstructionRecord, engine: Engine, core: int) -> Iterator[Use]:
        row = record.row
        if row is None:
            return
        facts = self.executable.facts(record, self.target, engine)
        for rule, operand in zip(row.operands, record.operands, strict=False):
            if isinstance(operand, PatternRecord):
                access = row.access_of(rule, facts)
                yield self._use(operand, core, access.reads, access.writes)
        for hidden in record.operands[len(row.operands) :]:
            if isinstance(hidden, PatternRecord):
                yield self._use(hidden, core, True, False)

    def _use(self, pattern: PatternRecord, core: int, reads: bool, writes: bool) -> Use:
        tensor = self.executable.tensors[pattern.tensor]
        low, high = pattern.extent() if pattern.dynamic is None else (0, tensor.bytes)
        if not tensor.buffer.on_chip:
            box = Box((pattern.tensor, "hbm"), 0, 1, low, high)
            return Use(box, pattern.tensor, pattern, reads, writes)
        first = tensor.partition + pattern.start
        extent = (first, first + pattern.partitions, tensor.byte + low, tensor.byte + high)
        return Use(
            Box((core, tensor.buffer.value), *extent), pattern.tensor, pattern, reads, writes
        )


def relation(before: tuple[Use, ...], after: tuple[Use, ...]) -> tuple[Relation, int]:
    """Return why `after` has to wait for `before`, and the tensor concerned (-1: none)."""
    result = (Relation.ORDER, -1)
    for first in before:
        for second in after:
            if not first.box.overlaps(second.box):
                continue
            if first.writes and second.reads and first.tensor == second.tensor:
                return Relation.DATA, second.tensor
            if second.writes and (first.reads or first.writes):
                result = (Relation.MEMORY, second.tensor)
    return result


class Edge(NamedTuple):
    """A dependence of `after` on `before`; `tensor` is the one that is read or needs memory."""

    before: int
    after: int
    relation: Relation
    tensor: int


@dataclass
class _LatestAccesses:
    """The latest accesses to a box."""

    writer: int = -1
    tensor: int = -1  # that of the latest write
    readers: dict[int, int] = field(default_factory=dict)  # the latest read, by stream


class _Finder:
    """Walks over the events in execution order."""

    def __init__(self, trace: Trace, uses: Uses) -> None:
        self.trace = trace
        self.uses = [
            uses.of(e.record, trace.streams[e.stream].engine, trace.streams[e.stream].core)
            for e in trace.events
        ]
        self.accesses: dict[Box, _LatestAccesses] = {}
        self.near: dict[Box, list[Box]] = {}
        self.by_memory: dict[tuple[int, str], list[Box]] = defaultdict(list)
        self.tracked = self._tracked()

    def _tracked(self) -> set[tuple[int, str]]:
        """Return the memories of which some bytes are both written and read."""
        read, written = set(), set()
        for use in {use for uses in self.uses for use in uses}:
            read |= {use.box.memory} if use.reads else set()
            written |= {use.box.memory} if use.writes else set()
        return read & written

    def edges(self) -> Iterator[Edge]:
        for number, event in enumerate(self.trace.events):
            latest: dict[tuple[int, Relation, int], int] = {}
            for use in self.uses[number]:
                if use.box.memory in self.tracked:
                    for before, reason in self._before(use):
                        self._add(latest, number, before, reason, use.tensor)
            for use in self.uses[number]:
                if use.box.memory in self.tracked:
                    self._record(use, number, event.stream)
            for (_, reason, tensor), before in latest.items():
                yield Edge(before, number, reason, tensor)

    def _add(
        self,
        latest: dict[tuple[int, Relation, int], int],
        number: int,
        before: int,
        reason: Relation,
        tensor: int,
    ) -> None:
        """Record the edge unless another implies it.

        Items of a stream complete in order, so the latest one covers those before it.
        """
        stream = self.trace.events[before].stream
        same = stream == self.trace.events[number].stream
        if same and self.trace.streams[stream].engine is not Engine.DMA:
            return
        key = (stream, reason, tensor)
        latest[key] = max(before, latest.get(key, -1))

    def _neighbours(self, box: Box) -> list[Box]:
        """Return the known boxes that share bytes with `box`, itself included."""
        if box not in self.accesses:
            self.accesses[box] = _LatestAccesses()
            neighbours = [each for each in self.by_memory[box.memory] if each.overlaps(box)]
            for each in neighbours:
                self.near[each].append(box)
            self.near[box] = [*neighbours, box]
            self.by_memory[box.memory].append(box)
        return self.near[box]

    def _before(self, use: Use) -> Iterator[tuple[int, Relation]]:
        for box in self._neighbours(use.box):
            accesses = self.accesses[box]
            if use.reads and accesses.writer >= 0:
                yield accesses.writer, Relation.DATA
            if not use.writes:
                continue
            for reader in accesses.readers.values():
                yield reader, Relation.MEMORY
            if accesses.writer >= 0 and not use.reads:
                yield (
                    accesses.writer,
                    Relation.MEMORY if accesses.tensor != use.tensor else Relation.DATA,
                )

    def _record(self, use: Use, number: int, stream: int) -> None:
        if use.writes:
            for box in self._neighbours(use.box):
                if use.box.covers(box):
                    self.accesses[box] = _LatestAccesses()
            self.accesses[use.box] = _LatestAccesses(number, use.tensor)
        elif use.reads:
            self.accesses[use.box].readers[stream] = number


def edges(trace: Trace, uses: Uses) -> list[Edge]:
    """Return every pair of dependent events, with the reason.

    For each pair of streams, only the latest event is listed.
    """
    return [*_Finder(trace, uses).edges()]
