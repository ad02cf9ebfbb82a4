"""The events of a run as tracks, slices, flows and counters, from which every trace is made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.machine.memory import MEMORIES
from nkic.neff import places
from nkic.neff.listing import text
from nkic.neff.records import StreamRecord
from nkic.report.insight.memory import levels
from nkic.report.insight.sources import name_of
from nkic.report.insight.verdict import Insight


class Slice(NamedTuple):
    """An instruction on the track of its stream, which it held from `start` to `end` (ps)."""

    event: int
    track: int
    name: str
    start: int
    end: int
    args: dict[str, Any]


class Flow(NamedTuple):
    """A wait of `after` for a signal of `before`; both are events."""

    before: int
    after: int


class Level(NamedTuple):
    """A counter: its values, each with the time (ps) from which it holds."""

    name: str
    unit: str
    values: list[tuple[int, float]]


def streams(insight: Insight) -> tuple[StreamRecord, ...]:
    """Return the streams of the trace, then one without items for each engine that only triggers
    transfers.
    """
    traced = insight.trace.streams
    present = {(stream.core, stream.engine) for stream in traced}
    by = {(traced[e.stream].core, e.triggered_by) for e in insight.trace.events if e.trigger}
    only_triggering = sorted(by - present, key=lambda pair: (pair[0], pair[1].value))
    return (*traced, *(StreamRecord(core, engine, 0, ()) for core, engine in only_triggering))


def track_names(insight: Insight) -> dict[int, str]:
    """Return the names of the streams that executed or triggered something, engines before
    queues.
    """
    used = {event.stream for event in insight.trace.events if event.record.row is not None}
    used |= {trigger.track for trigger in triggers(insight)}
    all_streams = streams(insight)
    rank = [*SHORT_NAMES]
    key = [(stream.core, rank.index(stream.engine), stream.queue) for stream in all_streams]
    ordered = sorted(used, key=lambda number: key[number])
    return {number: name_of(insight.trace, all_streams[number]) for number in ordered}


def slices(insight: Insight) -> list[Slice]:
    """Return every instruction. Those of one track do not overlap."""
    if "slices" not in insight.kept:
        insight.kept["slices"] = list(_slices(insight))
    cached: list[Slice] = insight.kept["slices"]
    return cached


def _slices(insight: Insight) -> Iterator[Slice]:
    accounts, runs = insight.accounts, Counter[int]()
    critical: dict[int, int] = defaultdict(int)
    for segment in insight.path:
        critical[segment.event] += segment.time
    for number, event in enumerate(insight.trace.events):
        record = event.record
        if record.row is None:
            continue
        runs[record.place] += 1
        args: dict[str, Any] = {
            "source": str(accounts.lines.of(record.place)),
            "run": runs[record.place],
            "instruction": text.instruction(record),
            "start_ps": event.start,
            "duration_ps": event.free - event.start,
            "complete_ps": event.done,
        }
        inner = accounts.lines.inner(record.place)
        optional = {
            "inside": str(inner) if inner is not None else "",
            "iteration": places.iterations(insight.trace.executable, record),
            "iterations": list(event.iterations),
            "bytes": event.bytes,
            "critical_ps": critical.get(number, 0),
            **{f"stall_{cause}_ps": time for cause, time in accounts.stalls(event)},
        }
        args |= {name: value for name, value in optional.items() if value}
        yield Slice(number, event.stream, record.row.name, event.start, event.free, args)


def triggers(insight: Insight) -> Iterator[Slice]:
    """Yield the time that transfers take on the engines that trigger them, on those engines'
    tracks.

    Time in which such an engine also did work of its own is left out.
    """
    all_streams = streams(insight)
    by_engine: dict[tuple[int, Engine], int] = {
        (s.core, s.engine): n for n, s in enumerate(all_streams) if s.engine is not Engine.DMA
    }
    for number, event in enumerate(insight.trace.events):
        if event.trigger_hold:
            stream = by_engine[all_streams[event.stream].core, event.triggered_by]
            args = {
                "source": str(insight.accounts.lines.of(event.record.place)),
                "iteration": places.iterations(insight.trace.executable, event.record),
                "start_ps": event.ready + event.trigger_overlap,
                "duration_ps": event.trigger_hold,
            }
            start, end = event.ready + event.trigger_overlap, event.ready + event.trigger
            yield Slice(number, stream, "trigger", start, end, args)


def flows(insight: Insight) -> Iterator[Flow]:
    """Yield a flow from each signalling event to the waiting one.

    An empty slot waits on behalf of the next instruction of its stream, and signals on behalf of
    the last one.
    """
    events = insight.trace.events
    origins: dict[int, set[int]] = {}  # of slots: the instructions that they stand for
    last: dict[int, int] = {}  # the latest instruction, by stream
    pending: dict[int, set[int]] = defaultdict(set)
    for number, event in enumerate(events):
        sources = pending.pop(event.stream, set())
        for token in event.tokens:
            sources |= origins.get(token, {token})
        if event.record.row is None:
            pending[event.stream] = sources
            latest = last.get(event.stream)
            origins[number] = sources if latest is None else {latest}
            continue
        last[event.stream] = number
        yield from (Flow(source, number) for source in sorted(sources))


def counters(insight: Insight) -> list[Level]:
    """Return the bytes live on chip, the rate of transfers, and the number of transfers in
    flight.
    """
    events, streams = insight.trace.events, insight.trace.streams
    levels_made: list[Level] = []
    for buffer in MEMORIES:
        live_ranges = [life for life in insight.live_ranges if life.buffer is buffer]
        if live_ranges:
            alive = [(time, float(level)) for time, level in levels(live_ranges)]
            levels_made.append(Level(f"{buffer.value.upper()} in use", "bytes", alive))
    moved = [e for e in events if e.record.row and streams[e.stream].engine is Engine.DMA]
    if moved:
        rates = [(e.start, e.free, e.bytes * 1000 / max(1, e.free - e.start)) for e in moved]
        levels_made.append(Level("transfers", "GB/s", steps(rates)))
        depth = [(e.start, e.done, 1.0) for e in moved]
        levels_made.append(Level("transfers under way", "transfers", steps(depth)))
    return levels_made


def steps(spans: Iterable[tuple[int, int, float]]) -> list[tuple[int, float]]:
    """Return the sum of the values whose spans are open, at each change."""
    changes: dict[int, list[float]] = defaultdict(list)
    for start, end, value in spans:
        if end > start:
            changes[start].append(value)
            changes[end].append(-value)
    level, series, open_spans = 0.0, [], 0
    for time in sorted(changes):
        open_spans += sum(1 if value > 0 else -1 for value in changes[time])
        level = level + sum(changes[time]) if open_spans else 0.0  # no rounding residue
        series.append((time, round(level, 6)))
    return series
