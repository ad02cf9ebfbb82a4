"""A trace in the JSON format of Chrome's trace viewer, which ui.perfetto.dev also reads.

Times are microseconds with six decimals: exact picoseconds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from nkic.report.insight.verdict import Insight
from nkic.report.views import tracks

PROCESS = 1
_COUNTERS = 0  # the thread of the counters
_ENCODER = json.JSONEncoder(allow_nan=False)
_EFFORT = 6  # of gzip: more takes twice the time and saves one per cent


def trace(insight: Insight) -> bytes:
    """Return the whole trace."""
    lines = ",\n".join(
        [*map(_ENCODER.encode, _events(insight)), *_flows(insight), *_levels(insight)]
    )
    head = json.dumps({"kernel": insight.trace.executable.name, "end_ps": insight.trace.end})
    return (
        f'{{"displayTimeUnit": "ns", "otherData": {head}, "traceEvents": [\n{lines}\n]}}\n'.encode()
    )


def compressed(insight: Insight) -> bytes:
    """Return the trace compressed with gzip, without a time or name, so that equal runs give equal
    bytes.
    """
    return gzip.compress(trace(insight), _EFFORT, mtime=0)


def _events(insight: Insight) -> Iterator[dict[str, Any]]:
    yield _meta("process_name", {"name": insight.trace.executable.name})
    for position, (stream, name) in enumerate(tracks.track_names(insight).items()):
        yield _meta("thread_name", {"name": name}, stream)
        yield _meta("thread_sort_index", {"sort_index": position}, stream)
    for interval in (*tracks.slices(insight), *tracks.triggers(insight)):
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
    """Yield lines of JSON. They hold only numbers, which need no encoder, and are the most
    frequent.
    """
    events = insight.trace.events
    for number, (before, after) in enumerate(tracks.flows(insight)):
        source, target = events[before], events[after]
        shared = f'"cat": "signal", "name": "signal", "id": {number}, "pid": {PROCESS}, "tid": '
        yield f'{{"ph": "s", {shared}{source.stream + 1}, "ts": {_us(source.start)!r}}}'
        yield f'{{"ph": "f", "bp": "e", {shared}{target.stream + 1}, "ts": {_us(target.start)!r}}}'


def _levels(insight: Insight) -> Iterator[str]:
    """Yield lines of JSON for the counters."""
    for counter in tracks.counters(insight):
        name, unit = json.dumps(counter.name), json.dumps(counter.unit)
        shared = f'{{"ph": "C", "name": {name}, "pid": {PROCESS}, "tid": {_COUNTERS}, "ts": '
        for time, value in counter.values:
            yield f'{shared}{_us(time)!r}, "args": {{{unit}: {value!r}}}}}'


def _meta(name: str, args: dict[str, Any], stream: int = -1) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": PROCESS, "tid": stream + 1, "args": args}


def _us(time: int) -> float:
    return time / 1_000_000
