"""Compute the figures of a run again from its events and the file's tables.

Tests compare reports with these figures; no code is shared with the reports.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from nkic.artifact.events import Event, Trace
from nkic.artifact.records import InstructionRecord, PatternRecord

SHORT = {
    **{"tensor": "PE", "scalar": "ACT", "gpsimd": "POOL", "vector": "DVE", "sync": "SP"},
    "dma": "DMA",
}
Line = tuple[str, int]
Use = tuple[int, str, tuple[int, int, int, int], bool, bool]  # tensor, memory, box, reads, writes


@dataclass
class Costs:
    """The costs of a line, in picoseconds and bytes."""

    runs: int = 0
    busy: Counter[str] = field(default_factory=Counter)
    triggers: Counter[str] = field(default_factory=Counter)
    stalls: Counter[str] = field(default_factory=Counter)
    read: int = 0
    written: int = 0
    flops: int = 0
    critical: int = 0


class Recount:
    """The recomputed figures.

    `path` is the critical path: the events of its parts with their durations.
    """

    def __init__(self, trace: Trace, path: Iterable[Any]) -> None:
        self.trace = trace
        self.executable = trace.executable
        self.events = trace.events
        self.executed = [e for e in trace.events if e.record.row is not None]
        self.critical: Counter[int] = Counter()
        for part in path:
            self.critical[part.event] += part.end - part.start
        self.lines: dict[Line, Costs] = defaultdict(Costs)
        self.library: dict[tuple[Line, Line], Costs] = defaultdict(Costs)
        for number, event in enumerate(trace.events):
            place = event.record.place
            line, inner = self.line(place), self.inner(place)
            self._count(self.lines[line], event, number)
            if inner is not None:
                self._count(self.library[line, inner], event, number)

    def _count(self, cost: Costs, event: Event, number: int) -> None:
        cost.critical += self.critical[number]
        for cause, time in self.stalls(event):
            cost.stalls[cause] += time
        if event.record.row is not None:
            read, written = self.hbm(event)
            cost.runs += 1
            cost.busy[self.engine(event)] += event.free - event.start
            cost.triggers[SHORT[event.triggered_by.value]] += event.trigger_hold
            cost.read, cost.written = cost.read + read, cost.written + written
            cost.flops += self.flops(event)

    # Places

    def line(self, place: int) -> Line:
        """Return the first line outside nkic's own code, from the place through its callers."""
        at = place
        while at >= 0:
            row = self.executable.places[at]
            if not self.executable.files[row.file].path.startswith("<nkic"):
                return self.executable.files[row.file].path, row.line
            at = row.caller
        return self._own(place)

    def inner(self, place: int) -> Line | None:
        own = self._own(place)
        return own if own[0].startswith("<nkic") and self.line(place) != own else None

    def _own(self, place: int) -> Line:
        if place < 0:
            return "", 0
        row = self.executable.places[place]
        return self.executable.files[row.file].path, row.line

    def engine(self, event: Event) -> str:
        return SHORT[self.trace.streams[event.stream].engine.value]

    # Bytes and operations

    def uses(self, event: Event) -> Iterator[Use]:
        """Return the accesses of an event: rows and bytes of a memory, from the first to one past
        the last.
        """
        record, row = event.record, event.record.row
        if row is None:
            return
        stream = self.trace.streams[event.stream]
        facts = self.executable.facts(record, self.trace.target, stream.engine)
        for number, operand in enumerate(record.operands):
            if not isinstance(operand, PatternRecord):
                continue
            reads, writes = True, False  # operands after the row's own are offsets
            if number < len(row.operands):
                mode = row.access_of(row.operands[number], facts)
                reads, writes = mode.reads, mode.writes
            yield (operand.tensor, *self._box(operand, stream.core), reads, writes)

    def _box(self, p: PatternRecord, core: int) -> tuple[str, tuple[int, int, int, int]]:
        tensor, size = self.executable.tensors[p.tensor], p.dtype.size
        ends = [step * (num - 1) for step, num in p.dims]
        low = (p.offset + sum(min(0, end) for end in ends)) * size
        high = (p.offset + sum(max(0, end) for end in ends) + 1) * size
        if p.dynamic is not None:
            low, high = 0, tensor.bytes
        if tensor.buffer.value.endswith("hbm"):
            return f"hbm{p.tensor}", (0, 1, low, high)
        first = tensor.partition + p.start
        memory = f"{tensor.buffer.value}{core}"
        return memory, (first, first + p.partitions, tensor.byte + low, tensor.byte + high)

    def hbm(self, event: Event) -> tuple[int, int]:
        read = written = 0
        for operand, use in zip(_patterns(event.record), self.uses(event), strict=True):
            if use[1].startswith("hbm"):
                size = prod(n for _, n in operand.dims) * operand.dtype.size
                read, written = read + size * use[3], written + size * use[4]
        return read, written

    def flops(self, event: Event) -> int:
        """Return two operations for each pair of elements that a product multiplies."""
        row = event.record.row
        if row is None or row.name != "nc_matmul":
            return 0
        named = dict(zip((o.name for o in row.operands), event.record.operands, strict=False))
        stationary, moving = named["stationary"], named["moving"]
        assert isinstance(stationary, PatternRecord) and isinstance(moving, PatternRecord)
        columns = [prod(n for _, n in one.dims) for one in (stationary, moving)]
        return 2 * stationary.partitions * columns[0] * columns[1]

    def moving_flops(self, event: Event) -> int:
        """Return the same of a transpose on the tensor engine: data times an identity."""
        row = event.record.row
        if row is None or row.name != "nc_transpose" or self.engine(event) != "PE":
            return 0
        data = _patterns(event.record)[1]
        return 2 * data.partitions**2 * prod(n for _, n in data.dims)

    def on_chip(self, memory: str) -> tuple[int, int]:
        """Return the bytes read from a memory and written there; from PSUM by engines alone, and
        without those that a product is added to.
        """
        read = written = 0
        for event in self.executed:
            engine = self.engine(event)
            if memory == "psum" and engine == "DMA":
                continue
            for operand, use in zip(_patterns(event.record), self.uses(event), strict=True):
                if use[1].startswith(memory):
                    size = operand.partitions * prod(n for _, n in operand.dims)
                    size *= operand.dtype.size
                    read += size * (use[3] and not (engine == "PE" and use[4]))
                    written += size * use[4]
        return read, written

    # Waiting

    def stalls(self, event: Event) -> Iterator[tuple[str, int]]:
        if event.ready > event.idle:
            yield self._why(event), event.ready - event.idle
        if event.start > event.ready:
            yield "bandwidth", event.start - event.ready
        if event.table:
            yield "table", event.table

    def _why(self, event: Event) -> str:
        if event.cause.value != "semaphore" or event.before < 0:
            return {"result": "data"}.get(event.cause.value, event.cause.value)
        own = list(self.uses(event))
        for number in (event.before, *event.tokens):
            before = list(self.uses(self.events[number]))
            pairs = [(a, b) for a in before for b in own if _meet(a, b)]
            if any(a[4] and b[3] and a[0] == b[0] for a, b in pairs):
                return "data"
            if any(b[4] for _, b in pairs):
                return "memory"
        return "order"

    # Memory

    def alive(self, buffer: str) -> dict[int, tuple[int, int, int]]:
        """Return the tensors of that memory: the times of first and last use, and their bytes."""
        found: dict[int, tuple[int, int, int]] = {}
        for event in self.events:
            for number, *_ in self.uses(event):
                tensor = self.executable.tensors[number]
                if tensor.buffer.value == buffer:
                    start, end, _ = found.get(number, (event.start, event.done, 0))
                    size = tensor.shape[0] * prod(tensor.shape[1:]) * tensor.dtype.size
                    found[number] = min(start, event.start), max(end, event.done), size
        return found

    def peak(self, buffer: str) -> int:
        alive = self.alive(buffer).values()
        return max((sum(size for a, b, size in alive if a <= t < b) for t, *_ in alive), default=0)

    def covered(self, spans: Iterable[tuple[int, int]]) -> int:
        """Return the total time covered by at least one span."""
        changes: Counter[int] = Counter()
        for start, end in spans:
            changes[start] += 1
            changes[end] -= 1
        total = level = last = 0
        for mark in sorted(changes):
            total += (mark - last) * (level > 0)
            level, last = level + changes[mark], mark
        return total


def _patterns(record: InstructionRecord) -> list[PatternRecord]:
    return [operand for operand in record.operands if isinstance(operand, PatternRecord)]


def _meet(one: Use, other: Use) -> bool:
    a, b = one[2], other[2]
    return one[1] == other[1] and a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
