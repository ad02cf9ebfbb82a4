"""The costs of each source line: engine time, waiting by cause, bytes, operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from nkic.machine.engines import SHORT_NAMES
from nkic.machine.memory import Buffer
from nkic.report.insight.critical import Segment
from nkic.report.insight.relations import Relation, Use, Uses, relation
from nkic.report.insight.sources import Line, Lines
from nkic.trace import Cause, Event, Trace

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
        """Bytes from and to HBM."""
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
