"""A finished run, for people and for programs: the same figures in both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nkic.base.text import clean, grouped
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.machine.targets import Target
from nkic.report.trust import MIXED, Trust

SCHEMA = 1
_HASH_SHOWN = 12  # hex digits that tell two arrays apart for a reader


@dataclass(frozen=True)
class InputRow:
    """An input: `source` is npz, file, a number, or the generator that made it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class BoundRow:
    """How far elements of an output may be from exact arithmetic: the greatest bound that is
    finite (None if there is none), the same as a share of the greatest magnitude, where it is
    (an index), and how many elements have none.
    """

    maximum: float | None
    relative: float | None
    at: tuple[int, ...]
    unbounded: int

    @property
    def text(self) -> str:
        """For people."""
        words = []
        if self.maximum is not None:
            share = f", {self.relative:.2g} of the greatest" if self.relative is not None else ""
            words.append(f"off by at most {self.maximum:.3g} (at {list(self.at)}{share})")
        if self.unbounded:
            words.append(f"without a bound: {grouped(self.unbounded)}")
        return ", ".join(words)


@dataclass(frozen=True)
class OutputRow:
    """An output: least, mean and greatest of its finite elements, None if there are none;
    `error_bound` where it was asked for.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    minimum: float | None
    mean: float | None
    maximum: float | None
    nan: int
    inf: int
    sha256: str
    error_bound: BoundRow | None = None

    @property
    def line(self) -> str:
        """The output in one line."""
        figures = [("min", self.minimum), ("mean", self.mean), ("max", self.maximum)]
        known = [f"{word} {value:.6g}" for word, value in figures if value is not None]
        counts = [f"nan {grouped(self.nan)}", f"inf {grouped(self.inf)}"]
        sizes = ", ".join(map(str, self.shape))
        head = f"{clean(self.name)}  {self.dtype}[{sizes}]"
        return "  ".join([head, *known, *counts, f"sha256 {self.sha256[:_HASH_SHOWN]}"])

    @property
    def bound_line(self) -> str:
        """How far it may be off, in one line; nothing if that was not asked for."""
        return f"{clean(self.name)}  {self.error_bound.text}" if self.error_bound else ""


@dataclass(frozen=True)
class PrintRow:
    """What the program printed: a string, and a tensor with its values as text."""

    core: int
    prefix: str
    dtype: str
    shape: tuple[int, ...]
    text: str

    def lines(self, cores: int) -> str:
        """The print for people; the core is told where there are several."""
        where = f" (core {self.core})" if cores > 1 else ""
        return f"{self.prefix}{where} {self.dtype}{list(self.shape)}\n{self.text}"


@dataclass(frozen=True)
class EngineRow:
    """What an engine did: nanoseconds busy, instructions executed."""

    busy_ns: float
    instructions: int


@dataclass(frozen=True)
class RunReport:
    """A finished run. `engines` by core and engine, as "core0.vector"; `compare` are the
    comparisons with what was expected, as JSON; `accumulate` is "exact", "float32" or "pairwise"
    where that was asked for, else "measured"; `prints` what the program printed, in order, and
    `prints_left_out` how many more came after the limit; `seconds_host` only where it was asked
    for, since it is never the same twice; `unbounded` are the instructions that error bounds do not
    cover, with their places. `launch_ns` is what a runtime takes before and after the kernel, and
    no part of `time_ns`; `machine` the hash of the machine file whose figures hold, else
    "default"; `trust` how far the time is likely to be off.
    `verdict` says what bounds the run, where that was looked at.
    """

    kernel: str
    target: str
    id: str
    cycles: int
    time_ns: float
    engines: Mapping[str, EngineRow]
    instructions: int
    dma_bytes: int
    precise_fp: bool
    accumulate: str
    resources: Mapping[str, object]
    inputs: Sequence[InputRow]
    outputs: Sequence[OutputRow]
    compare: Sequence[Mapping[str, Any]]
    prints: Sequence[PrintRow] = ()
    prints_left_out: int = 0
    seconds_host: float | None = None
    unbounded: Sequence[str] = ()
    launch_ns: float = 0.0
    machine: str = "default"
    trust: Trust = MIXED
    verdict: Mapping[str, object] | None = None


def as_json(run: RunReport) -> str:
    """The run as one JSON object, strict JSON: no NaN in it, no infinity."""
    return _printed({"schema": SCHEMA, **record(run)})


def ranks_as_json(runs: Sequence[RunReport]) -> str:
    """Runs of several ranks as one JSON object: under "ranks", in their order."""
    return _printed({"schema": SCHEMA, "ranks": [record(run) for run in runs]})


def record(run: RunReport) -> dict[str, Any]:
    """The run as it is printed: what was not asked for is left out."""
    record = asdict(run)
    for name in ("seconds_host", "verdict"):
        if record[name] is None:
            del record[name]
    if all(row.error_bound is None for row in run.outputs):
        del record["unbounded"]
        for row in record["outputs"]:
            del row["error_bound"]
    return record


def _printed(record: dict[str, object]) -> str:
    return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=True) + "\n"


def left_out_line(run: RunReport) -> str:
    """That there were more prints than are kept; nothing if there were not."""
    left = run.prints_left_out
    return f"{grouped(left)} more prints are not shown" if left else ""


def cycles_line(run: RunReport, target: Target) -> str:
    """`add: 41,220 cycles (34.35 us at 1.2 GHz), PE 52% ACT 11%, DMA 46.2 GB/s`"""
    clock = f"{target.base_clock_mhz / 1000:g} GHz"
    parts = [f"{clean(run.kernel)}: {grouped(run.cycles)} cycles ({_time(run.time_ns)} at {clock})"]
    cores = sorted({name.partition(".")[0] for name in run.engines})
    for core in cores:
        shares = _shares(run, core)
        if shares:
            parts.append(f"{core} {shares}" if len(cores) > 1 else shares)
    if run.dma_bytes and run.time_ns:
        parts.append(f"DMA {run.dma_bytes / run.time_ns:.1f} GB/s")
    if run.seconds_host is not None:
        parts.append(f"simulated in {run.seconds_host:.2f} s")
    return ", ".join(parts)


def device_line(run: RunReport) -> str:
    """`on a device about 49 us: kernel 34.35 us + launch about 15 us; likely within 20 % …`"""
    launch, trust = run.launch_ns, run.trust
    machine = "" if run.machine == "default" else f"machine {run.machine[:_HASH_SHOWN]}; "
    return (
        f"{machine}on a device about {_rough(run.time_ns + launch)}: kernel {_time(run.time_ns)} + "
        f"launch about {_rough(launch)}; the kernel's time is likely within {trust.percent} % "
        f"({trust.kind}; docs/timing.md)"
    )


def _rough(ns: float) -> str:
    return f"{ns / 1e6:,.2f} ms" if ns >= 1e6 else f"{ns / 1e3:,.0f} us"


def _shares(run: RunReport, core: str) -> str:
    """How much of the time each engine of a core was busy. Queues run side by side, so that a
    sum over them says nothing: transfers are told by their rate.
    """
    words = []
    for engine, short in SHORT_NAMES.items():
        use = run.engines.get(f"{core}.{engine.value}")
        if use is not None and use.busy_ns and engine is not Engine.DMA and run.time_ns:
            words.append(f"{short} {100 * use.busy_ns / run.time_ns:.0f}%")
    return " ".join(words)


def _time(ns: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.2f} {unit}"
    return f"{ns:.0f} ns"
