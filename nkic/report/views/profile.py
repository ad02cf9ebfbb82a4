"""A run as one JSON object, for people's scripts, for comparison with other runs and, as its part
`neuron`, under the names of the vendor's profiler.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nkic.base.source import SourceFile
from nkic.report.insight.costs import LineCost
from nkic.report.insight.memory import peak
from nkic.report.insight.sources import Line
from nkic.report.insight.verdict import Insight
from nkic.report.views import summary

SCHEMA = "2.0.0"  # major: fields change their meaning; minor: fields are added
KIND = "nki-run profile"


def profile(
    insight: Insight, run: Mapping[str, Any], sources: Mapping[str, SourceFile]
) -> dict[str, Any]:
    """Return the JSON of a run with the costs of its lines, and its memory by tensor.

    `run` is the JSON of a run whose time was not analysed; lines carry their text if it is in
    `sources`. Times are nanoseconds. Two runs of one program give the same object.
    """
    trace, accounts = insight.trace, insight.accounts
    mix = Counter(e.record.row.name for e in trace.events if e.record.row is not None)
    return {
        "profile": KIND,
        "profile_schema_version": SCHEMA,
        **run,
        "mix": dict(sorted(mix.items())),
        "sbuf_peak": run["resources"]["sbuf_bytes"],
        "psum_banks": run["resources"]["psum_banks"],
        "verdict": insight.verdict.as_json(),
        "lines": [
            {"path": line.path, "line": line.number, **_text(line, sources), **_cost(cost)}
            for line, cost in sorted(accounts.by_line.items())
        ],
        "library": [
            {"path": line.path, "line": line.number, "inside": str(inner), **_cost(cost)}
            for (line, inner), cost in sorted(accounts.inside.items())
        ],
        "memory": _memory(insight),
        "neuron": summary.summary(insight),
    }


def _text(line: Line, sources: Mapping[str, SourceFile]) -> dict[str, str]:
    text = sources[line.path].line(line.number).strip() if line.path in sources else ""
    return {"text": text} if text else {}


def _cost(cost: LineCost) -> dict[str, Any]:
    return {
        "executions": cost.executions,
        "critical_ns": cost.critical / 1000,
        "busy_ns": {name: time / 1000 for name, time in sorted(cost.busy.items())},
        "trigger_ns": {name: time / 1000 for name, time in sorted(cost.triggers.items())},
        "stall_ns": {cause: time / 1000 for cause, time in sorted(cost.stalls.items())},
        "hbm_read_bytes": cost.hbm_read,
        "hbm_write_bytes": cost.hbm_written,
        "flops": cost.operations,
    }


def _memory(insight: Insight) -> dict[str, Any]:
    """Return, by memory, the maximum of bytes in use at one time, and their owners."""
    memories: dict[str, Any] = {}
    for buffer in sorted({life.buffer for life in insight.live_ranges}, key=lambda b: b.value):
        memory_peak = peak(insight.live_ranges, buffer)
        memories[buffer.value] = {
            "peak_bytes": memory_peak.bytes,
            "peak_at_ns": memory_peak.time / 1000,
            "tensors": [
                {"name": name, "path": line.path, "line": line.number, "bytes": size}
                for name, line, size in memory_peak.owners
            ],
        }
    return memories


def as_json(value: Mapping[str, Any]) -> str:
    """Return strict JSON."""
    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
