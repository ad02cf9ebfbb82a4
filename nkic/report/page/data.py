"""The data of the page as compact columns: a run of 200,000 instructions takes a few megabytes."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from nkic.base.text import clean
from nkic.report.insight.critical import Spent
from nkic.report.insight.verdict import Insight
from nkic.report.views import tracks


class _Names:
    """Interned texts by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def column(values: Iterable[float], kind: str) -> str:
    """Return numbers as base64 of their bytes, in little-endian order."""
    return base64.b64encode(np.fromiter(values, f"<{kind}").tobytes()).decode("ascii")


def columns(insight: Insight) -> dict[str, Any]:
    """Return tracks, instructions, the critical path and memory."""
    names, lines = _Names(), _Names()
    return {
        "end": insight.trace.end,
        "clock": insight.accounts.target.base_clock_mhz,
        "tracks": _tracks(insight),
        "events": _events(insight, names, lines),
        "triggers": _triggers(insight),
        "path": _path(insight),
        "memory": [_memory(insight, buffer, names, lines) for buffer in ("sbuf", "psum")],
        "names": [clean(name) for name in names.numbers],
        "lines": [clean(line) for line in lines.numbers],
        "iterations": [clean(iterations) for iterations in insight.trace.executable.iterations],
        "causes": list(_causes(insight)),
    }


def _tracks(insight: Insight) -> list[dict[str, Any]]:
    streams = tracks.streams(insight)
    triggering = {trigger.track for trigger in tracks.triggers(insight)}
    return [
        {
            "stream": stream,
            "name": name,
            "engine": streams[stream].engine.value,
            "triggers": stream in triggering,
        }
        for stream, name in tracks.track_names(insight).items()
    ]


def _causes(insight: Insight) -> dict[str, int]:
    causes = sorted({cause for cost in insight.accounts.by_line.values() for cause in cost.stalls})
    return {cause: number for number, cause in enumerate(["", *causes])}


def _events(insight: Insight, names: _Names, lines: _Names) -> dict[str, str]:
    """Return one value per event of the trace; empty slots have the name -1."""
    accounts, causes = insight.accounts, _causes(insight)
    events = insight.trace.events
    waits = [max(accounts.stalls(e), key=lambda pair: pair[1], default=("", 0)) for e in events]
    kinds = [names(e.record.row.name) if e.record.row is not None else -1 for e in events]
    return {
        "stream": column((e.stream for e in events), "u2"),
        "start": column((e.start for e in events), "f8"),
        "time": column((e.free - e.start for e in events), "f8"),
        "done": column((e.done - e.start for e in events), "f8"),
        "name": column(kinds, "i4"),
        "line": column((lines(str(accounts.lines.of(e.record.place))) for e in events), "i4"),
        "iterations": column((e.record.iterations for e in events), "i4"),
        "before": column((e.pool_before if e.is_late else e.before for e in events), "i4"),
        "cause": column((causes[cause] for cause, _ in waits), "u1"),
        "wait": column((time for _, time in waits), "f8"),
        "bytes": column((e.bytes for e in events), "f8"),
    }


def _triggers(insight: Insight) -> dict[str, str]:
    """Return the time that transfers take on the engines that trigger them."""
    slices = [*tracks.triggers(insight)]
    return {
        "event": column((trigger.event for trigger in slices), "i4"),
        "stream": column((trigger.track for trigger in slices), "u2"),
        "start": column((trigger.start for trigger in slices), "f8"),
        "time": column((trigger.end - trigger.start for trigger in slices), "f8"),
    }


def _path(insight: Insight) -> dict[str, str]:
    """Return the critical path; a trigger is on the track of the engine that triggers."""
    by = {trigger.event: trigger.track for trigger in tracks.triggers(insight)}
    events = insight.trace.events
    held = (
        by.get(segment.event, events[segment.event].stream)
        if segment.spent is Spent.TRIGGER
        else events[segment.event].stream
        for segment in insight.path
    )
    return {
        "event": column((segment.event for segment in insight.path), "i4"),
        "stream": column(held, "u2"),
        "start": column((segment.start for segment in insight.path), "f8"),
        "end": column((segment.end for segment in insight.path), "f8"),
    }


def _memory(insight: Insight, buffer: str, names: _Names, lines: _Names) -> dict[str, Any]:
    live_ranges = [life for life in insight.live_ranges if life.buffer.value == buffer]
    target = insight.accounts.target
    limits = {"sbuf": target.sbuf_usable, "psum": target.psum_bytes}
    return {
        "name": buffer.upper(),
        "limit": limits[buffer] * 128 * max(1, insight.trace.executable.cores),
        "tensor": column((names(life.name) for life in live_ranges), "i4"),
        "line": column((lines(str(life.line)) for life in live_ranges), "i4"),
        "start": column((life.start for life in live_ranges), "f8"),
        "end": column((life.end for life in live_ranges), "f8"),
        "bytes": column((life.bytes for life in live_ranges), "f8"),
    }
