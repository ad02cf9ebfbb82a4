"""The metrics of a run under the names of the vendor's profiler, where the meaning is the same.

Times are seconds and percentages are fractions of 1, as in the profiler. Metrics that a simulation
of one kernel cannot know, such as throttling, or that the vendor does not define, are absent, not
zero. Names and units: Neuron Explorer's profile schema reference; `neuron-profile view
--output-format summary-json`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.memory import SPILLED, Buffer
from nkic.report.insight.verdict import Insight
from nkic.trace import Event

Number = float | int
PS = 1e-12  # seconds

_ENGINES = {
    "tensor": Engine.TENSOR,
    "vector": Engine.VECTOR,
    "scalar": Engine.SCALAR,
    "gpsimd": Engine.GPSIMD,
    "sync": Engine.SYNC,
}


class Metric(NamedTuple):
    """A metric; `unit` is s, fraction, count, bytes, flop or flop/byte, and `value` returns None if
    unknown.
    """

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
        """Return the instructions that these engines executed."""
        streams = self.trace.streams
        events = (e for e in self.trace.events if e.record.row is not None)
        return [e for e in events if streams[e.stream].engine in engines]

    def active(self, *engines: Engine) -> float:
        """Return the seconds in which at least one instruction or trigger of these engines was
        executing.
        """
        executing = [(e.start, e.free) for e in self.events(*engines)]
        triggers = [
            (e.ready, e.ready + e.trigger) for e in self.trace.events if e.triggered_by in engines
        ]
        return _union([*executing, *triggers]) * PS

    def products(self) -> list[Event]:
        """Return the matrix products."""
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
    """Return the operations per second of all cores."""
    return facts.target.peak_operations * 1e9 * facts.cores


def _bandwidth(facts: _Facts) -> float:
    """Return the bytes per second of all cores."""
    return facts.target.peak_rate * 1e9 * facts.cores


def _of_engine(name: str, engine: Engine) -> dict[str, Metric]:
    return {
        f"{name}_engine_active_time": Metric(
            "s", "time in which the engine executed something", lambda f: f.active(engine)
        ),
        f"{name}_engine_active_time_percent": Metric(
            "fraction", "the same of total_time", lambda f: _share(f.active(engine), f.time)
        ),
        f"{name}_engine_instruction_count": Metric(
            "count", "instructions that the engine executed", lambda f: len(f.events(engine))
        ),
    }


METRICS: dict[str, Metric] = {
    "total_time": Metric("s", "from the first instruction to the last result", lambda f: f.time),
    "total_active_time": Metric(
        "s", "time in which some engine or queue executed something", lambda f: f.active(*Engine)
    ),
    "total_active_time_percent": Metric(
        "fraction", "the same of total_time", lambda f: _share(f.active(*Engine), f.time)
    ),
    **{key: metric for name, e in _ENGINES.items() for key, metric in _of_engine(name, e).items()},
    "matmul_instruction_count": Metric("count", "matrix products", lambda f: len(f.products())),
    "dma_active_time": Metric(
        "s", "time in which a queue moved something", lambda f: f.active(Engine.DMA)
    ),
    "dma_active_time_percent": Metric(
        "fraction", "the same of total_time", lambda f: _share(f.active(Engine.DMA), f.time)
    ),
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
