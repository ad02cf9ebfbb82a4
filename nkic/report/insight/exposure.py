"""How much of a run's critical path each figure of the clock makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from types import MappingProxyType

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Timing
from nkic.neff.records import Executable, InstructionRecord, StreamRecord
from nkic.pace import Clock
from nkic.report.insight.critical import Segment, Spent
from nkic.trace import Trace

NUDGE = 0.1  # share by which a figure is changed to find its effect
COLD, STAYS_COLD = "tensor.warm_up_ns", "tensor.least_use"
TABLE, SIGNAL = "scalar.table_ns", "issue.semaphore_ns"
Shares = Mapping[str, float]  # by figure: the change of a time if the figure grows, both relative


class Noted(dict[str, float]):
    """Figures that note which of them are read."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        super().__init__(figures)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.read.add(name)
        return super().__getitem__(name)


def exposure(trace: Trace, path: Sequence[Segment]) -> dict[str, float]:
    """Return by how much the run's time grows with each figure, both relative, by way of this path.

    A share of 0.8 of a rate is -0.8. Figures that decide what is on the path, and not how long it
    takes, have no share, except the one that decides whether the tensor engine stays cold: the time
    that this costs.
    """
    spent: dict[tuple[int, Spent], int] = defaultdict(int)
    first: dict[tuple[int, Spent], int] = {}
    for segment in path:
        key = id(trace.events[segment.event].record), segment.spent
        spent[key] += segment.time
        first.setdefault(key, segment.event)
    effects = _Effects(trace.executable, trace.target)
    shares: dict[str, float] = defaultdict(float)
    for key, time in spent.items():
        event = trace.events[first[key]]
        stream = trace.streams[event.stream]
        held = event.free - event.start - event.table
        for name, effect in effects.of(event.record, stream, key[1], held).items():
            shares[name] += effect * time / max(1, trace.end)
    if shares[COLD] * trace.end / 1000 > trace.target.figures[COLD]:  # not only at the start
        shares[STAYS_COLD] += shares.pop(COLD)
    return {name: share for name, share in sorted(shares.items()) if abs(share) > 1e-6}


class _Effects:
    """The effects of figures on an instruction's times, found by changing each."""

    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable, self.target = executable, target
        self.clock = Clock(executable, target)
        self.known: dict[tuple[object, ...], tuple[int, Shares]] = {}

    def of(
        self, record: InstructionRecord, stream: StreamRecord, spent: Spent, held: int
    ) -> Shares:
        """Return the effects on one use of the path, of an event that `held` its engine."""
        if spent in (Spent.SIGNAL, Spent.TABLE):
            return {SIGNAL if spent is Spent.SIGNAL else TABLE: 1.0}
        if record.row is None or spent in (Spent.RENDEZVOUS, Spent.START):
            return {}
        key = self.clock.signature(record, stream.engine, stream.queue), spent
        if key not in self.known:
            self.known[key] = self._found(record, stream, spent)
        base, shares = self.known[key]
        cold = 1 - base / held if spent is Spent.BUSY and stream.engine is Engine.TENSOR else 0.0
        if base and cold > 0:
            return {name: share * (1 - cold) for name, share in shares.items()} | {COLD: cold}
        return shares

    def _found(
        self, record: InstructionRecord, stream: StreamRecord, spent: Spent
    ) -> tuple[int, Shares]:
        """Return the time of one use, and its change with each figure that matters."""
        figures = Noted(self.target.figures)
        base = _time(self._timed(figures, record, stream), stream.engine, spent)
        if not base:
            return 0, {}
        clocks = {f"{engine.value}.clock_mhz" for engine in Engine if engine is not stream.engine}
        shares = {}
        for name in sorted(figures.read - clocks):
            changed = {**figures, name: figures[name] * (1 + NUDGE)}
            after = _time(self._timed(changed, record, stream), stream.engine, spent)
            if after != base:
                shares[name] = log(max(1, after) / base) / log(1 + NUDGE)
        return base, shares

    def _timed(
        self, figures: Mapping[str, float], record: InstructionRecord, stream: StreamRecord
    ) -> Timing:
        target = replace(self.target, figures=MappingProxyType(figures))
        return Clock(self.executable, target).of(record, stream.engine, stream.queue)[0]


def _time(timing: Timing, engine: Engine, spent: Spent) -> int:
    if spent is Spent.TRIGGER:
        return timing.trigger
    if spent is Spent.LATENCY:
        return timing.latency + (timing.start if engine is Engine.DMA else 0)
    return timing.hold
