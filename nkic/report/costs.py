"""The costs of each source line: engine time, waiting by cause, bytes, operations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from nkic.artifact.events import Cause, Event, Trace
from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.targets import SHORT_NAMES, Buffer, Engine, Target
from nkic.report.critical import Line, Lines, Segment

# ------------------------------------------------------------------------------------------------
# Dependences between events: which event needs another's data, and which waits for memory.
# Accesses are approximated by boxes of partitions and of bytes in each partition, from the first
# byte that a pattern touches to the last. On chip these are physical addresses, so a tensor that
# reuses the bytes of another waits for memory. In HBM only tensors that the kernel both writes and
# reads matter.


class Relation(Enum):
    """Why one event waits for another."""

    DATA = "data"  # reads what the other writes
    MEMORY = "memory"  # overwrites what the other still uses
    ORDER = "order"  # neither is known: a loop's barrier, a queue's order

    __hash__ = object.__hash__


class Box(NamedTuple):
    """A box of bytes: memory (core and buffer, or a tensor in HBM), partitions, bytes of each."""

    memory: tuple[int, str]
    first: int
    last: int  # one past
    low: int
    high: int  # one past

    def overlaps(self, other: Box) -> bool:
        return (
            self.memory == other.memory
            and self.first < other.last
            and other.first < self.last
            and self.low < other.high
            and other.low < self.high
        )

    def covers(self, other: Box) -> bool:
        return (
            self.first <= other.first
            and other.last <= self.last
            and self.low <= other.low
            and other.high <= self.high
        )


class Use(NamedTuple):
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
    writer: int = -1
    tensor: int = -1  # that of the latest write
    readers: dict[int, int] = field(default_factory=dict)  # the latest read, by stream


_LOW = attrgetter("low")


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
        # The known boxes of a memory by the bits of their width, in the order of `low`.
        self.by_width: dict[tuple[int, str], dict[int, list[Box]]] = defaultdict(dict)
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
                    if use.writes:
                        for box in self._neighbours(use.box):
                            if use.box.covers(box):
                                self.accesses[box] = _LatestAccesses()
                        self.accesses[use.box] = _LatestAccesses(number, use.tensor)
                    elif use.reads:
                        self.accesses[use.box].readers[event.stream] = number
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
            by_width = self.by_width[box.memory]
            neighbours = [
                boxes[n]
                for bits, boxes in by_width.items()
                for n in range(
                    bisect_right(boxes, box.low - (1 << bits), key=_LOW),
                    bisect_left(boxes, box.high, key=_LOW),
                )
                if boxes[n].overlaps(box)
            ]
            for each in neighbours:
                self.near[each].append(box)
            self.near[box] = [*neighbours, box]
            bits = (box.high - box.low - 1).bit_length()  # no wider than 1 << bits
            insort(by_width.setdefault(bits, []), box, key=_LOW)
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


def edges(trace: Trace, uses: Uses) -> list[Edge]:
    """Return every pair of dependent events, with the reason.

    For each pair of streams, only the latest event is listed.
    """
    return [*_Finder(trace, uses).edges()]


# --------------------------------------------------------------------------------------------------

HBM = (Buffer.HBM, Buffer.SHARED_HBM)


@dataclass
class LineCost:
    """The costs of a line; times are picoseconds.

    `busy` maps an engine to the time that the line's instructions held it; `stalls` maps a cause to
    the time that engines and queues were idle before its instructions; `triggers` maps an engine to
    the time that triggers of its transfers held it; `critical` is its part of the critical path.
    """

    executions: int = 0
    busy: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stalls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    triggers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    hbm_read: int = 0
    hbm_written: int = 0
    operations: int = 0
    critical: int = 0

    @property
    def time(self) -> int:
        """The time that the line held engines, summed over all engines."""
        return sum(self.busy.values())

    @property
    def hbm(self) -> int:
        return self.hbm_read + self.hbm_written

    @property
    def main(self) -> str:
        """The engine that the line kept busy longest; empty if none."""
        return max(self.busy, key=lambda name: self.busy[name], default="")


class Accounts:
    """The costs of a trace by line.

    `by_line` counts each event once; `inside` gives the part that nkic's own library made there, by
    the library's lines.
    """

    def __init__(self, trace: Trace, path: list[Segment]) -> None:
        self.trace = trace
        self.target = trace.target
        self.uses = Uses(trace.executable, trace.target)
        self.lines = Lines(trace.executable)
        self.by_line: dict[Line, LineCost] = defaultdict(LineCost)
        self.inside: dict[tuple[Line, Line], LineCost] = defaultdict(LineCost)
        self.why: dict[tuple[int, int], Relation] = {}
        for event in trace.events:
            for cost in self._costs(event):
                self._add(event, cost)
        for segment in path:
            for cost in self._costs(trace.events[segment.event]):
                cost.critical += segment.time

    def _costs(self, event: Event) -> list[LineCost]:
        """Return the costs to add to: those of the user's line, and those of nkic's library line,
        if any.
        """
        place = event.record.place
        line, inner = self.lines.of(place), self.lines.inner(place)
        line_cost = self.by_line[line]
        return [line_cost] if inner is None else [line_cost, self.inside[line, inner]]

    def _add(self, event: Event, cost: LineCost) -> None:
        for cause, time in self.stalls(event):
            cost.stalls[cause] += time
        if event.record.row is None:
            return
        engine = self.trace.streams[event.stream].engine
        read, written = self.hbm_bytes(event)
        cost.executions += 1
        cost.busy[SHORT_NAMES[engine]] += event.free - event.start
        if event.trigger_hold:
            cost.triggers[SHORT_NAMES[event.triggered_by]] += event.trigger_hold
        cost.hbm_read += read
        cost.hbm_written += written
        cost.operations += self.operations(event)

    def uses_of(self, event: Event) -> tuple[Use, ...]:
        """Return the event's memory accesses."""
        stream = self.trace.streams[event.stream]
        return self.uses.of(event.record, stream.engine, stream.core)

    def hbm_bytes(self, event: Event) -> tuple[int, int]:
        """Return the bytes that the event reads from HBM, and those that it writes there."""
        read = written = 0
        for use in self.uses_of(event):
            if self.trace.executable.tensors[use.tensor].buffer in HBM:
                size = use.pattern.elements * use.pattern.dtype.size
                read += size if use.reads else 0
                written += size if use.writes else 0
        return read, written

    def operations(self, event: Event) -> int:
        """Return the additions and multiplications of a matrix product; 0 for other events."""
        row = event.record.row
        if row is None or row.operations is None:
            return 0
        return self.uses.products(event.record, self.trace.streams[event.stream].engine)

    def stalls(self, event: Event) -> Iterator[tuple[str, int]]:
        """Yield the causes for which the event's stream was idle before it, each with its time."""
        waited = event.ready - event.idle
        if waited > 0:
            yield self.cause(event), waited
        if event.start > event.ready:
            yield "bandwidth", event.start - event.ready
        if event.table:
            yield "table", event.table

    def cause(self, event: Event) -> str:
        """Return why the event was not ready when its stream was free."""
        if event.cause is Cause.RESULT:
            return str(Relation.DATA.value)
        if event.cause is not Cause.SEMAPHORE or event.before < 0:
            return str(event.cause.value)
        return str(self.relation(event).value)

    def relation(self, event: Event) -> Relation:
        """Return the relation of the event to the one that it waited for last."""
        uses = self.uses_of(event)
        for number in (event.before, *event.tokens):
            before = self.trace.events[number]
            key = (id(before.record), id(event.record))
            relation_found = self.why.get(key)
            if relation_found is None:
                relation_found = self.why[key] = relation(self.uses_of(before), uses)[0]
            if relation_found is not Relation.ORDER:
                return relation_found
        return Relation.ORDER


# ---- Live ranges of tensors: from the first access to the end of the last one -------------------


class LiveRange(NamedTuple):
    """The live range of a tensor on chip in picoseconds; `bytes` are of all its partitions."""

    tensor: int
    name: str
    buffer: Buffer
    core: int
    line: Line
    start: int
    end: int
    bytes: int


class Peak(NamedTuple):
    """The maximum of bytes live at one time, the first time of it, and the owners.

    `owners` gives the bytes by name and declaring line, greatest first.
    """

    bytes: int
    time: int
    owners: tuple[tuple[str, Line, int], ...]


def live_ranges(accounts: Accounts) -> list[LiveRange]:
    """Return the live range of every tensor in SBUF and PSUM that was used, by start."""
    spans: dict[int, tuple[int, int]] = {}
    for event in accounts.trace.events:
        for use in accounts.uses_of(event):
            start, end = spans.get(use.tensor, (event.start, event.done))
            spans[use.tensor] = min(start, event.start), max(end, event.done)
    all_ranges = [_live_range(accounts, number, *span) for number, span in spans.items()]
    return sorted(
        (live_range for live_range in all_ranges if live_range.buffer.on_chip),
        key=lambda life: life[5:7],
    )


def _live_range(accounts: Accounts, number: int, start: int, end: int) -> LiveRange:
    tensor = accounts.trace.executable.tensors[number]
    partitions = tensor.shape[0] if tensor.shape else 1
    line = accounts.lines.of(tensor.place)
    size = tensor.bytes * partitions
    return LiveRange(number, tensor.name, tensor.buffer, tensor.core, line, start, end, size)


def levels(spans: Iterable[tuple[int, int, float]]) -> list[tuple[int, float]]:
    """Return the sum of the values whose spans (a start, an end, a value) are open, at each change.

    Values that are whole numbers have exact sums.
    """
    changes: dict[int, float] = defaultdict(int)
    for start, end, value in spans:
        if end > start:
            changes[start] += value
            changes[end] -= value
    times = sorted(changes)
    return [*zip(times, accumulate(changes[time] for time in times), strict=True)]


def peak(live_ranges: Sequence[LiveRange], buffer: Buffer) -> Peak:
    live_ranges = [life for life in live_ranges if life.buffer is buffer]
    alive = levels((life.start, life.end, life.bytes) for life in live_ranges)
    time, level = max(alive, key=lambda pair: (pair[1], -pair[0]), default=(0, 0))
    owners: dict[tuple[str, Line], int] = defaultdict(int)
    for life in live_ranges:
        if life.start <= time < life.end:
            owners[life.name, life.line] += life.bytes
    ranked = sorted(owners.items(), key=lambda pair: (-pair[1], pair[0]))
    return Peak(int(level), time, tuple((name, line, size) for (name, line), size in ranked))
