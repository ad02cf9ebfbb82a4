"""A trace in Perfetto's own format, written with the classes of the package `perfetto`.

Perfetto counts nanoseconds; exact picoseconds are in the arguments of every slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from nkic.report.insight.verdict import Insight
from nkic.report.views import tracks

_PROCESS = 1  # uuids: first the process, then counters from 2 on, then streams
_FIRST_COUNTER = 2
_FIRST_STREAM = 100
_SEQUENCE = 1


def is_there() -> bool:
    """Whether perfetto is installed."""
    return find_spec("perfetto") is not None


def trace(insight: Insight) -> bytes:
    """Return the whole trace."""
    writer = _Writer()
    writer.process(insight.trace.executable.name)
    for stream, name in tracks.track_names(insight).items():
        writer.track(_FIRST_STREAM + stream, name)
    incoming: dict[int, list[int]] = defaultdict(list)
    outgoing: dict[int, list[int]] = defaultdict(list)
    for number, (before, after) in enumerate(tracks.flows(insight), 1):
        outgoing[before].append(number)
        incoming[after].append(number)
    for interval in tracks.slices(insight):
        writer.slice(interval, outgoing[interval.event], incoming[interval.event])
    for interval in tracks.triggers(insight):
        writer.slice(interval, [], [])
    for number, counter in enumerate(tracks.counters(insight), _FIRST_COUNTER):
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

    def slice(self, interval: tracks.Slice, outgoing: list[int], incoming: list[int]) -> None:
        begin = self._event(interval.track + _FIRST_STREAM, interval.start, "TYPE_SLICE_BEGIN")
        begin.name = interval.name
        begin.categories.append("instruction")
        begin.flow_ids.extend(outgoing)
        begin.terminating_flow_ids.extend(incoming)
        path, _, line = interval.args["source"].rpartition(":")
        if path:
            begin.source_location.file_name = path
            begin.source_location.line_number = int(line)
        _annotate(begin, interval.args)
        self._event(interval.track + _FIRST_STREAM, interval.end, "TYPE_SLICE_END")

    def counter(self, uuid: int, counter: tracks.Level) -> None:
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
        """Return the serialised trace."""
        return bytes(self.builder.serialize())


def _annotate(event: Any, args: Mapping[str, Any]) -> None:
    for name, value in args.items():
        annotation = event.debug_annotations.add()
        annotation.name = name
        if isinstance(value, int):
            annotation.int_value = value
        else:
            annotation.string_value = str(value)
