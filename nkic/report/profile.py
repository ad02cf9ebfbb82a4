"""A run as one JSON object, for people's scripts, for comparison with other runs and, as its part
`neuron`, under the names of the vendor's profiler.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from nkic.artifact.events import Event
from nkic.base.source import SourceFile
from nkic.machine.targets import SPILLED, Buffer, Engine
from nkic.report.costs import LineCost, peak
from nkic.report.critical import Line
from nkic.report.verdict import Insight

# ------------------------------------------------------------------------------------------------
# The metrics of a run under the names of the vendor's profiler, where the meaning is the same.
# Times are seconds and percentages are fractions of 1, as in the profiler. Metrics that a
# simulation of one kernel cannot know, such as throttling, or that the vendor does not define, are
# absent, not zero. Names and units: Neuron Explorer's profile schema reference;
# `neuron-profile view --output-format summary-json`.

Number = float | int
PS = 1e-12  # seconds

_ENGINES = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.SYNC)


class Metric(NamedTuple):
    """A metric in s, fraction, count, bytes, flop or flop/byte; `value` is None if unknown."""

    unit: str
    meaning: str
    value: Callable[[_Facts], Number | None]


class _Facts:
    """Sums over a trace that several metrics need."""

    def __init__(self, insight: Insight) -> None:
        self.insight = insight
        self.trace = insight.trace
        self.target = insight.accounts.target
        self.cores = max(1, self.trace.executable.cores)
        self.time = self.trace.end * PS
        costs = insight.accounts.by_line.values()
        self.read = sum(cost.hbm_read for cost in costs)
        self.written = sum(cost.hbm_written for cost in costs)
        self.flops = sum(cost.operations for cost in costs)
        self.bytes = self._accessed()
        self.transposing = self._transposing()

    def events(self, *engines: Engine) -> list[Event]:
        streams = self.trace.streams
        events = (e for e in self.trace.events if e.record.row is not None)
        return [e for e in events if streams[e.stream].engine in engines]

    def active(self, *engines: Engine) -> float:
        """Return the seconds in which at least one instruction or trigger of these engines ran."""
        executing = [(e.start, e.free) for e in self.events(*engines)]
        triggers = [
            (e.ready, e.ready + e.trigger) for e in self.trace.events if e.triggered_by in engines
        ]
        return _union([*executing, *triggers]) * PS

    def products(self) -> list[Event]:
        rows = ((event, event.record.row) for event in self.trace.events)
        return [event for event, row in rows if row is not None and row.operations is not None]

    def _transposing(self) -> int:
        """Return the additions and multiplications of products that only move data."""
        total = 0
        for event in self.events(Engine.TENSOR):
            row = event.record.row
            if row is not None and row.transposing is not None:
                facts = self.trace.executable.facts(event.record, self.target, Engine.TENSOR)
                total += row.transposing(facts)
        return total

    def _accessed(self) -> dict[tuple[str, bool], int]:
        """Return the bytes read (False) and written (True): in "sbuf", by engines in "psum", and
        by spilling in HBM.

        What the tensor engine adds to in PSUM is written, not read.
        """
        found: dict[tuple[str, bool], int] = defaultdict(int)
        for event in self.events(*Engine):
            engine = self.trace.streams[event.stream].engine
            for use in self.insight.accounts.uses_of(event):
                tensor = self.trace.executable.tensors[use.tensor]
                size = use.pattern.elements * use.pattern.dtype.size
                where = tensor.buffer.value
                if not tensor.buffer.on_chip:
                    if not tensor.name.endswith(SPILLED):
                        continue  # `read` and `written` have it
                    where = "spill"
                elif tensor.buffer is Buffer.PSUM and engine is Engine.DMA:
                    continue
                adds = engine is Engine.TENSOR and use.writes
                found[where, False] += size if use.reads and not adds else 0
                found[where, True] += size if use.writes else 0
        return found


def _union(spans: Iterable[tuple[int, int]]) -> int:
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _average(facts: _Facts) -> float | None:
    moved = facts.events(Engine.DMA)
    return sum(e.bytes for e in moved) / len(moved) if moved else None


def _intensity(facts: _Facts) -> float | None:
    moved = facts.read + facts.written
    return facts.flops / moved if moved else None


def _rate(facts: _Facts) -> float:
    return facts.target.peak_operations * 1e9 * facts.cores


def _bandwidth(facts: _Facts) -> float:
    return facts.target.peak_rate * 1e9 * facts.cores


def _activity(name: str, what: str, *engines: Engine) -> dict[str, Metric]:
    return {
        f"{name}_active_time": Metric("s", f"time in which {what}", lambda f: f.active(*engines)),
        f"{name}_active_time_percent": Metric(
            "fraction", "the same of total_time", lambda f: _share(f.active(*engines), f.time)
        ),
    }


def _of_engine(engine: Engine) -> dict[str, Metric]:
    name, meaning = f"{engine.value}_engine", "instructions that the engine executed"
    count = Metric("count", meaning, lambda f: len(f.events(engine)))
    busy = _activity(name, "the engine executed something", engine)
    return busy | {f"{name}_instruction_count": count}


METRICS: dict[str, Metric] = {
    "total_time": Metric("s", "from the first instruction to the last result", lambda f: f.time),
    **_activity("total", "some engine or queue executed something", *Engine),
    **{key: metric for engine in _ENGINES for key, metric in _of_engine(engine).items()},
    "matmul_instruction_count": Metric("count", "matrix products", lambda f: len(f.products())),
    **_activity("dma", "a queue moved something", Engine.DMA),
    "dma_transfer_count": Metric("count", "transfers", lambda f: len(f.events(Engine.DMA))),
    "dma_transfer_total_bytes": Metric(
        "bytes", "bytes moved by transfers", lambda f: sum(e.bytes for e in f.events(Engine.DMA))
    ),
    "dma_transfer_average_bytes": Metric("bytes", "the same of one transfer", _average),
    "hbm_read_bytes": Metric("bytes", "bytes read from HBM", lambda f: f.read),
    "hbm_write_bytes": Metric("bytes", "bytes written to HBM", lambda f: f.written),
    "model_flops": Metric(
        "flop", "multiplications and additions of matrix products", lambda f: f.flops
    ),
    "sbuf_read_bytes": Metric("bytes", "bytes read from SBUF", lambda f: f.bytes["sbuf", False]),
    "sbuf_write_bytes": Metric("bytes", "bytes written to SBUF", lambda f: f.bytes["sbuf", True]),
    "psum_read_bytes": Metric(
        "bytes", "bytes that engines read from PSUM", lambda f: f.bytes["psum", False]
    ),
    "psum_write_bytes": Metric(
        "bytes", "bytes that engines wrote to PSUM", lambda f: f.bytes["psum", True]
    ),
    "spill_save_bytes": Metric(
        "bytes", "bytes that --spill stored", lambda f: f.bytes["spill", True]
    ),
    "spill_reload_bytes": Metric(
        "bytes", "bytes that --spill reloaded", lambda f: f.bytes["spill", False]
    ),
    "transpose_flops": Metric(
        "flop", "the same of products that only move data", lambda f: f.transposing
    ),
    "hardware_flops": Metric("flop", "the sum of both", lambda f: f.flops + f.transposing),
    "mfu_estimated_percent": Metric(
        "fraction",
        "model_flops as a share of what the array can do in 16-bit floats",
        lambda f: _share(f.flops, _rate(f) * f.time),
    ),
    "hfu_estimated_percent": Metric(
        "fraction",
        "hardware_flops as a share of what the array can do in 16-bit floats",
        lambda f: _share(f.flops + f.transposing, _rate(f) * f.time),
    ),
    "mbu_estimated_percent": Metric(
        "fraction",
        "bytes from and to HBM as a share of what the DMA engines can move",
        lambda f: _share(f.read + f.written, _bandwidth(f) * f.time),
    ),
    "mm_arithmetic_intensity": Metric(
        "flop/byte", "operations of products per byte from or to HBM", _intensity
    ),
    "peak_flops_bandwidth_ratio": Metric(
        "flop/byte", "the ridge point of the roofline", lambda f: _rate(f) / _bandwidth(f)
    ),
}


def summary(insight: Insight) -> dict[str, Number]:
    """Return the known metrics of this run."""
    facts = _Facts(insight)
    values = ((name, metric.value(facts)) for name, metric in METRICS.items())
    return {name: value for name, value in values if value is not None}


# --------------------------------------------------------------------------------------------------

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
        "neuron": summary(insight),
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
    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
