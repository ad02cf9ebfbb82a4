"""The events of a run as tracks, slices, flows and counters, from which every trace is made."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from nkic.artifact import disassemble, records
from nkic.artifact.records import StreamRecord
from nkic.base.text import clean
from nkic.machine.targets import MEMORIES, SHORT_NAMES, Engine
from nkic.report.costs import levels
from nkic.report.critical import name_of
from nkic.report.verdict import Insight


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
    """Return the streams of the trace, then an empty one for each engine that only triggers."""
    traced = insight.trace.streams
    present = {(stream.core, stream.engine) for stream in traced}
    by = {(traced[e.stream].core, e.triggered_by) for e in insight.trace.events if e.trigger}
    only_triggering = sorted(by - present, key=lambda pair: (pair[0], pair[1].value))
    return (*traced, *(StreamRecord(core, engine, 0, ()) for core, engine in only_triggering))


def track_names(insight: Insight) -> dict[int, str]:
    """Return the names of the streams that executed or triggered something, engines first."""
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
            "instruction": disassemble.instruction(record),
            "start_ps": event.start,
            "duration_ps": event.free - event.start,
            "complete_ps": event.done,
        }
        inner = accounts.lines.inner(record.place)
        optional = {
            "inside": str(inner) if inner is not None else "",
            "iteration": records.iterations(insight.trace.executable, record),
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
                "iteration": records.iterations(insight.trace.executable, event.record),
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
    """Return the bytes live on chip, the rate of transfers, and their number in flight."""
    events, streams = insight.trace.events, insight.trace.streams
    levels_made: list[Level] = []
    for buffer in MEMORIES:
        live_ranges = [life for life in insight.live_ranges if life.buffer is buffer]
        if live_ranges:
            alive = [(life.start, life.end, float(life.bytes)) for life in live_ranges]
            levels_made.append(Level(f"{buffer.value.upper()} in use", "bytes", levels(alive)))
    moved = [e for e in events if e.record.row and streams[e.stream].engine is Engine.DMA]
    if moved:
        rates = [(e.start, e.free, e.bytes * 1000 / max(1, e.free - e.start)) for e in moved]
        rounded = [(time, abs(round(rate, 6))) for time, rate in levels(rates)]  # no residue
        levels_made.append(Level("transfers", "GB/s", rounded))
        depth = [(e.start, e.done, 1.0) for e in moved]
        levels_made.append(Level("transfers under way", "transfers", levels(depth)))
    return levels_made


# ------------------------------------------------------------------------------------------------
# A trace in the JSON format of Chrome's trace viewer, which ui.perfetto.dev also reads.
# Times are microseconds with six decimals: exact picoseconds.

PROCESS = 1
_COUNTERS = 0  # the thread of the counters
_ENCODER = json.JSONEncoder(allow_nan=False)
_EFFORT = 6  # of gzip: more takes twice the time and saves one per cent


def trace(insight: Insight) -> bytes:
    lines = ",\n".join(
        [*map(_ENCODER.encode, _events(insight)), *_flows(insight), *_levels(insight)]
    )
    head = json.dumps({"kernel": insight.trace.executable.name, "end_ps": insight.trace.end})
    return (
        f'{{"displayTimeUnit": "ns", "otherData": {head}, "traceEvents": [\n{lines}\n]}}\n'.encode()
    )


def compressed(insight: Insight) -> bytes:
    """Return the trace compressed with gzip; equal runs give equal bytes."""
    return gzip.compress(trace(insight), _EFFORT, mtime=0)


def _events(insight: Insight) -> Iterator[dict[str, Any]]:
    yield _meta("process_name", {"name": insight.trace.executable.name})
    for position, (stream, name) in enumerate(track_names(insight).items()):
        yield _meta("thread_name", {"name": name}, stream)
        yield _meta("thread_sort_index", {"sort_index": position}, stream)
    for interval in (*slices(insight), *triggers(insight)):
        kind = "trigger" if interval.name == "trigger" else "instruction"
        yield {
            **{"ph": "X", "cat": kind, "name": interval.name, "pid": PROCESS},
            **{
                "tid": interval.track + 1,
                "ts": _us(interval.start),
                "dur": _us(interval.end - interval.start),
            },
            "args": interval.args,
        }


def _flows(insight: Insight) -> Iterator[str]:
    """Yield lines of JSON: the most frequent, of numbers only, which need no encoder."""
    events = insight.trace.events
    for number, (before, after) in enumerate(flows(insight)):
        source, target = events[before], events[after]
        shared = f'"cat": "signal", "name": "signal", "id": {number}, "pid": {PROCESS}, "tid": '
        yield f'{{"ph": "s", {shared}{source.stream + 1}, "ts": {_us(source.start)!r}}}'
        yield f'{{"ph": "f", "bp": "e", {shared}{target.stream + 1}, "ts": {_us(target.start)!r}}}'


def _levels(insight: Insight) -> Iterator[str]:
    for counter in counters(insight):
        name, unit = json.dumps(counter.name), json.dumps(counter.unit)
        shared = f'{{"ph": "C", "name": {name}, "pid": {PROCESS}, "tid": {_COUNTERS}, "ts": '
        for time, value in counter.values:
            yield f'{shared}{_us(time)!r}, "args": {{{unit}: {value!r}}}}}'


def _meta(name: str, args: dict[str, Any], stream: int = -1) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": PROCESS, "tid": stream + 1, "args": args}


def _us(time: int) -> float:
    return time / 1_000_000


# ------------------------------------------------------------------------------------------------
# A trace in Perfetto's own format, written with the classes of the package `perfetto`.
# Perfetto counts nanoseconds; exact picoseconds are in the arguments of every slice.

_PROCESS = 1  # uuids: first the process, then counters from 2 on, then streams
_FIRST_COUNTER = 2
_FIRST_STREAM = 100
_SEQUENCE = 1


def perfetto_trace(insight: Insight) -> bytes:
    writer = _Writer()
    writer.process(insight.trace.executable.name)
    for stream, name in track_names(insight).items():
        writer.track(_FIRST_STREAM + stream, name)
    incoming: dict[int, list[int]] = defaultdict(list)
    outgoing: dict[int, list[int]] = defaultdict(list)
    for number, (before, after) in enumerate(flows(insight), 1):
        outgoing[before].append(number)
        incoming[after].append(number)
    for interval in slices(insight):
        writer.slice(interval, outgoing[interval.event], incoming[interval.event])
    for interval in triggers(insight):
        writer.slice(interval, [], [])
    for number, counter in enumerate(counters(insight), _FIRST_COUNTER):
        writer.counter(number, counter)
    return writer.bytes()


class _Writer:
    def __init__(self) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as form
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder

        self.form = form
        self.builder = TraceProtoBuilder()

    def process(self, name: str) -> None:
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name = _PROCESS, name
        descriptor.process.pid, descriptor.process.process_name = 1, name
        descriptor.child_ordering = self.form.TrackDescriptor.EXPLICIT

    def track(self, uuid: int, name: str) -> Any:
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.parent_uuid, descriptor.name = uuid, _PROCESS, name
        descriptor.sibling_order_rank = uuid
        return descriptor

    def slice(self, interval: Slice, outgoing: list[int], incoming: list[int]) -> None:
        begin = self._event(interval.track + _FIRST_STREAM, interval.start, "TYPE_SLICE_BEGIN")
        begin.name = interval.name
        begin.categories.append("instruction")
        begin.flow_ids.extend(outgoing)
        begin.terminating_flow_ids.extend(incoming)
        path, _, line = interval.args["source"].rpartition(":")
        if path:
            begin.source_location.file_name = path
            begin.source_location.line_number = int(line)
        for name, value in interval.args.items():
            annotation = begin.debug_annotations.add()
            annotation.name = name
            if isinstance(value, int):
                annotation.int_value = value
            else:
                annotation.string_value = str(value)
        self._event(interval.track + _FIRST_STREAM, interval.end, "TYPE_SLICE_END")

    def counter(self, uuid: int, counter: Level) -> None:
        self.track(uuid, counter.name).counter.unit_name = counter.unit
        for time, value in counter.values:
            self._event(uuid, time, "TYPE_COUNTER").double_counter_value = value

    def _packet(self) -> Any:
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _event(self, track: int, time: int, type: str) -> Any:
        packet = self._packet()
        packet.timestamp = round(time / 1000)
        packet.track_event.type = getattr(self.form.TrackEvent, type)
        packet.track_event.track_uuid = track
        return packet.track_event

    def bytes(self) -> bytes:
        return bytes(self.builder.serialize())


# ------------------------------------------------------------------------------------------------
# Every instruction of a run as a row of a Parquet file, for queries with SQL or data frames.
# The file's metadata has the schema's version as `profile_schema_version`: the major number rises
# when a column changes its meaning, the minor number when one is added.

SCHEMA = "1.1"
# Column to type; times are picoseconds of simulated time.
COLUMNS = {
    "event": "int64",  # in the order of execution
    "core": "int32",
    "engine": "string",
    "queue": "int32",
    "opcode": "string",
    "path": "string",
    "line": "int32",
    "inside": "string",  # the line of nkic's library, if any
    "run": "int64",  # executions of the place so far, this one included
    "iteration": "string",  # of Python's loops: i=3 j=0
    "start_ps": "int64",
    "end_ps": "int64",  # when the engine or queue accepts the next one
    "complete_ps": "int64",
    "stall": "string",  # the main cause of waiting
    "stall_ps": "int64",
    "critical_ps": "int64",  # its part of the critical path
    "bytes": "int64",
    "hbm_read_bytes": "int64",
    "hbm_write_bytes": "int64",
    "flops": "int64",
}


def rows(insight: Insight) -> Iterator[dict[str, Any]]:
    accounts, trace = insight.accounts, insight.trace
    for interval in slices(insight):
        event = trace.events[interval.event]
        stream = trace.streams[event.stream]
        line = accounts.lines.of(event.record.place)
        read, written = accounts.hbm_bytes(event)
        stall, waited = max(accounts.stalls(event), key=lambda pair: pair[1], default=("", 0))
        values = (
            *(interval.event, stream.core, SHORT_NAMES[stream.engine], stream.queue, interval.name),
            *(clean(line.path), line.number, interval.args.get("inside", ""), interval.args["run"]),
            interval.args.get("iteration", ""),
            *(event.start, event.free, event.done, stall, waited),
            *(interval.args.get("critical_ps", 0), event.bytes, read, written),
            accounts.operations(event),
        )
        yield dict(zip(COLUMNS, values, strict=True))


def parquet(insight: Insight) -> bytes:
    import pyarrow
    import pyarrow.parquet

    kinds = {name: getattr(pyarrow, kind)() for name, kind in COLUMNS.items()}
    metadata = {"profile_schema_version": SCHEMA, "kernel": clean(insight.trace.executable.name)}
    schema = pyarrow.schema(list(kinds.items()), metadata=metadata)
    table = pyarrow.Table.from_pylist(list(rows(insight)), schema=schema)
    stream = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, stream)
    return bytes(stream.getvalue().to_pybytes())
