"""The critical path of a run: the chain of events without gaps from start to end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import hypot, log
from types import MappingProxyType
from typing import NamedTuple

from nkic.artifact.events import Cause, Event, Trace
from nkic.artifact.pace import Clock
from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    StreamRecord,
    frames,
    is_shipped,
    span_of,
    user_place,
)
from nkic.base.text import clean
from nkic.machine.targets import SHORT_NAMES, Engine, Target, likely_error
from nkic.machine.timing import Timing

# ---- Events by the user's source line -----------------------------------------------------------


class Line(NamedTuple):
    """A source line; number 0 if the file does not tell it."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{clean(self.path)}:{self.number}" if self.number else "synchronisation"

    @property
    def short(self) -> str:
        """The line without folders."""
        return f"{clean(self.path).rpartition('/')[2]}:{self.number}" if self.number else str(self)


UNKNOWN = Line("", 0)


class Lines:
    """The source lines of places: the user's line, and the line in nkic's library, if any."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self._known: dict[int, Line] = {}
        self._outer: dict[int, Line] = {}
        self._inner: dict[int, Line | None] = {}

    def of(self, place: int) -> Line:
        """Return the innermost line that the user wrote."""
        line = self._known.get(place)
        if line is None:
            line = self._known[place] = self._at(user_place(self.executable, place))
        return line

    def outer(self, place: int) -> Line:
        """Return the line of the kernel itself, which calls what the user wrote elsewhere."""
        line = self._outer.get(place)
        if line is None:
            chain = frames(self.executable, place)
            user = [each for each in chain if not is_shipped(self.executable, each)]
            line = self._outer[place] = self._at(user[-1] if user else place)
        return line

    def inner(self, place: int) -> Line | None:
        """Return the line inside nkic's library if `place` is there; else None."""
        if place not in self._inner:
            is_inner = user_place(self.executable, place) != place
            self._inner[place] = self._at(place) if is_inner else None
        return self._inner[place]

    def _at(self, place: int) -> Line:
        span = span_of(self.executable, place)
        return Line(span.path, span.line) if span is not None else UNKNOWN


def name_of(trace: Trace, record: StreamRecord) -> str:
    """Return `PE` or `DMA 3`, with the core if there are several."""
    name = SHORT_NAMES[record.engine]
    name += f" {record.queue}" if record.engine is Engine.DMA else ""
    return f"core {record.core} {name}" if trace.executable.cores > 1 else name


# --------------------------------------------------------------------------------------------------


class Spent(Enum):
    """The use of a part of the path."""

    BUSY = "busy"  # an engine or the DMA engines held by the event
    LATENCY = "latency"  # until its result is visible
    TABLE = "table load"
    TRIGGER = "trigger"  # an engine held by the trigger of a transfer
    SIGNAL = "semaphore"  # from a signal to the start of the waiting event
    RENDEZVOUS = "rendezvous"
    START = "start"

    __hash__ = object.__hash__


class Segment(NamedTuple):
    """A part of the path, in picoseconds. That of a signal belongs to the event that waited."""

    event: int
    spent: Spent
    start: int
    end: int

    @property
    def time(self) -> int:
        return self.end - self.start


def critical_path(trace: Trace) -> list[Segment]:
    """Return the path from start to end; its parts are contiguous."""
    return [*reversed([*_backwards(trace)])] if trace.events else []


def _backwards(trace: Trace) -> Iterator[Segment]:
    events, until = trace.events, trace.end
    number = next(i for i, event in enumerate(events) if event.done == trace.end)
    triggered = False  # whether the path leaves the event through its trigger
    while number >= 0:
        event = events[number]
        if triggered:
            yield Segment(number, Spent.TRIGGER, event.ready, until)
        else:
            yield from _within(number, event, until)
        if event.is_late and not triggered:
            number, until = event.pool_before, min(until, event.start)
            continue
        released = 0
        if event.before >= 0:
            released = min(trace.released_at(event), event.ready)
        if released < event.ready:
            yield Segment(number, _GAPS.get(event.cause, Spent.SIGNAL), released, event.ready)
        triggered = trace.waited_for_trigger(event)
        number, until = event.before, released


_GAPS = {Cause.RENDEZVOUS: Spent.RENDEZVOUS, Cause.START: Spent.START}


def _within(number: int, event: Event, until: int) -> Iterator[Segment]:
    """Yield the parts of the event itself, from its start `until` another event could continue."""
    free = min(event.free, until)
    loaded = min(event.start + event.table, free)
    if until > free:
        yield Segment(number, Spent.LATENCY, free, until)
    if free > loaded:
        yield Segment(number, Spent.BUSY, loaded, free)
    if loaded > event.start:
        yield Segment(number, Spent.TABLE, event.start, loaded)


def spending(trace: Trace, path: list[Segment]) -> dict[str, int]:
    """Return the path's time by use, greatest first: "PE", "DMA transfers", "DMA latency", …"""
    times: dict[str, int] = defaultdict(int)
    for segment in path:
        times[_named(trace, segment)] += segment.time
    return dict(sorted(times.items(), key=lambda pair: (-pair[1], pair[0])))


def _named(trace: Trace, segment: Segment) -> str:
    engine = trace.streams[trace.events[segment.event].stream].engine
    if segment.spent is Spent.BUSY:
        return TRANSFERS if engine is Engine.DMA else SHORT_NAMES[engine]
    if segment.spent is Spent.TRIGGER:
        return TRIGGERS
    if segment.spent is Spent.LATENCY:
        return f"{SHORT_NAMES[engine]} latency"
    return str(segment.spent.value)


TRANSFERS, TRIGGERS = "DMA transfers", "DMA triggers"


# ---- How much of a run's critical path each figure of the clock makes ---------------------------

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


# ------------------------------------------------------------------------------------------------
# The likely error of a simulated time, from the figures of the clock on its critical path.
# A figure contributes its likely error times the share of the path that it makes. Contributions of
# different figures are independent, as is that of the model: the rules of the clock, and the order
# that a device's compiler chose. `tests/timing/left_out.py` compares what is stated with published
# times (docs/timing.md).

# Calibrated so that 90 % of the checked kernels are within what is stated for them.
MODEL = 0.2
# Of a time that consists of latencies, in addition: no published kernel is known whose time does,
# and in which order a device's compiler puts them is not either.
LATENT = 0.4
LATENCIES = ("dma.start_", "dma.done_", ".duration_", ".fill_", "semaphore")
CHECKED = "84 published kernels, of which 96 % are within what is stated for them"
SHOWN = 3  # figures that are named
LEAST_SHARE = 0.0005  # of the critical path, of a figure that is kept
# The figure that makes the time of an engine, if a run was too long to be recorded.
RATES: Mapping[Engine, str] = {
    Engine.DMA: "dma.engine_rate",
    Engine.SYNC: "dma.trigger_hwdge_ns",
    **{e: f"{e.value}.clock_mhz" for e in Engine if e not in (Engine.DMA, Engine.SYNC)},
}


@dataclass(frozen=True)
class Reason:
    """A figure, its share of the critical path (a rate: negative), and its likely error."""

    figure: str
    share: float
    error: float

    @property
    def effect(self) -> float:
        """The error of the time that follows, as a share of it."""
        return abs(self.share * self.error)


@dataclass(frozen=True)
class Trust:
    """The likely error of a time in percent, and its reasons, greatest effect first."""

    percent: int
    reasons: tuple[Reason, ...] = ()
    model_percent: int = 0
    checked: str = CHECKED

    @property
    def words(self) -> str:
        """`dma.engine_rate 9 %, the model 15 %`"""
        told = [r for r in self.reasons[:SHOWN] if r.effect >= 0.005]
        parts = [f"{r.figure} {100 * r.effect:.0f} %" for r in told]
        return ", ".join([*parts, f"the model {self.model_percent} %"])

    @property
    def path(self) -> str:
        """`dma.engine_rate makes 97 % of the critical path and is likely within 9 %`"""
        return "; ".join(
            f"{r.figure} makes {100 * abs(r.share):.0f} % of the critical path and is likely "
            f"within {100 * r.error:.0f} %"
            for r in self.reasons[:SHOWN]
            if abs(r.share) >= 0.005
        )


def trust_of(trace: Trace | None, target: Target, busy: Mapping[Engine, float]) -> Trust:
    """Return the trust in a run's time; without a complete trace, by the engines' `busy` shares."""
    if trace is not None and trace.complete and trace.events:
        return trusted(exposure(trace, critical_path(trace)), target)
    engine = max(busy, key=lambda engine: busy[engine], default=Engine.DMA)
    return trusted({RATES[engine]: min(1.0, busy.get(engine, 0.0))}, target)


def trusted(shares: Mapping[str, float], target: Target) -> Trust:
    """Return the trust in a time of whose critical path the figures make these shares."""
    reasons = [
        Reason(name, round(share, 4), round(likely_error(name, target), 4))
        for name, share in shares.items()
        if abs(share) >= LEAST_SHARE
    ]
    reasons.sort(key=lambda reason: (-reason.effect, reason.figure))
    latencies = (abs(shares[name]) for name in shares if any(word in name for word in LATENCIES))
    model = hypot(MODEL, LATENT * min(1.0, sum(latencies)))
    error = hypot(model, *(reason.effect for reason in reasons))
    return Trust(round(100 * error), tuple(reasons), round(100 * model))


NOTHING = Trust(100)
