"""The report of a finished run for people and for programs, with the same figures in both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nkic import __version__
from nkic.artifact.records import Executable
from nkic.base.text import clean, grouped, plural
from nkic.machine.targets import SHORT_NAMES, Engine, Target
from nkic.report.critical import NOTHING, Trust

SCHEMA = 1
_HASH_SHOWN = 12  # hex digits shown: enough for a reader to tell two arrays apart


@dataclass(frozen=True)
class InputRow:
    """An input: `source` is npz, file, a number, or the generator that made it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class BoundRow:
    """How far the elements of an output may be from exact arithmetic.

    `maximum` is the greatest finite bound (None if there is none), `relative` the same as a share
    of the greatest magnitude, `at` its index, and `unbounded` the number of elements without a
    bound.
    """

    maximum: float | None
    relative: float | None
    at: tuple[int, ...]
    unbounded: int

    @property
    def text(self) -> str:
        words = []
        if self.maximum is not None:
            share = (
                f", {self.relative:.2g} of the greatest value" if self.relative is not None else ""
            )
            words.append(f"off by at most {self.maximum:.3g} (at {list(self.at)}{share})")
        if self.unbounded:
            words.append(f"without a bound: {grouped(self.unbounded)}")
        return ", ".join(words)


@dataclass(frozen=True)
class OutputRow:
    """An output: minimum, mean and maximum of its finite elements, None if there are none.

    `error_bound` is set if it was requested.
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
        figures = [("min", self.minimum), ("mean", self.mean), ("max", self.maximum)]
        shown = [f"{name} {value:.6g}" for name, value in figures if value is not None]
        counts = [f"nan {grouped(self.nan)}", f"inf {grouped(self.inf)}"]
        sizes = ", ".join(map(str, self.shape))
        head = f"{clean(self.name)}  {self.dtype}[{sizes}]"
        return "  ".join([head, *shown, *counts, f"sha256 {self.sha256[:_HASH_SHOWN]}"])

    @property
    def bound_line(self) -> str:
        """Its error bound in one line; empty if it was not requested."""
        return f"{clean(self.name)}  {self.error_bound.text}" if self.error_bound else ""


@dataclass(frozen=True)
class PrintRow:
    """A print of the program: a string, and a tensor with its values as text."""

    core: int
    prefix: str
    dtype: str
    shape: tuple[int, ...]
    text: str

    def lines(self, cores: int) -> str:
        """Return the print for people, with the core if there are several."""
        core_label = f" (core {self.core})" if cores > 1 else ""
        return f"{self.prefix}{core_label} {self.dtype}{list(self.shape)}\n{self.text}"


@dataclass(frozen=True)
class EngineRow:
    """The use of an engine: nanoseconds busy, instructions executed."""

    busy_ns: float
    instructions: int


@dataclass(frozen=True)
class RunReport:
    """A finished run.

    `engines` has keys of core and engine, as "core0.vector"; `compare` has the comparisons with
    expected outputs, as JSON; `accumulate` is "exact", "float32" or "pairwise" if requested, else
    "measured"; `prints` has the program's prints, in order, and `prints_left_out` the number of
    those beyond the limit; `seconds_host` is set only on request, because it varies from run to
    run; `unbounded` names the instructions that error bounds do not cover, with their places.
    `launch_ns` is the runtime's time before and after the kernel, which is not part of `time_ns`;
    `machine` is the hash of the machine file in use, else "default"; `trust` is the likely error of
    the time. `verdict` tells what bounds the run, if that was analysed.
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
    resources: Mapping[str, Any]
    inputs: Sequence[InputRow]
    outputs: Sequence[OutputRow]
    compare: Sequence[Mapping[str, Any]]
    prints: Sequence[PrintRow] = ()
    prints_left_out: int = 0
    seconds_host: float | None = None
    unbounded: Sequence[str] = ()
    launch_ns: float = 0.0
    machine: str = "default"
    trust: Trust = NOTHING
    verdict: Mapping[str, object] | None = None


def as_json(run: RunReport) -> str:
    """Return the run as one JSON object, strict JSON: no NaN, no infinity."""
    document = {"schema": SCHEMA, **record(run)}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=True) + "\n"


def record(run: RunReport) -> dict[str, Any]:
    """Return the run as it is printed, without what was not requested."""
    record = asdict(run)
    for name in ("seconds_host", "verdict"):
        if record[name] is None:
            del record[name]
    if all(row.error_bound is None for row in run.outputs):
        del record["unbounded"]
        for row in record["outputs"]:
            del row["error_bound"]
    return record


def left_out_line(run: RunReport) -> str:
    """Return how many prints were not kept; empty if none."""
    left = run.prints_left_out
    return f"{grouped(left)} more prints are not shown" if left else ""


def cycles_line(run: RunReport, target: Target) -> str:
    """`add: 41,220 cycles (34.35 us at 1.2 GHz), PE 52% ACT 11%, DMA 46.2 GB/s`"""
    clock = f"{target.base_clock_mhz / 1000:g} GHz"
    parts = [f"{clean(run.kernel)}: {grouped(run.cycles)} cycles ({_time(run.time_ns)} at {clock})"]
    cores = sorted({name.partition(".")[0] for name in run.engines})
    for core in cores:
        # Queues run in parallel: a sum over them says nothing, so transfers have a rate instead.
        words = []
        for engine, short in SHORT_NAMES.items():
            use = run.engines.get(f"{core}.{engine.value}")
            if use is not None and use.busy_ns and engine is not Engine.DMA and run.time_ns:
                words.append(f"{short} {100 * use.busy_ns / run.time_ns:.0f}%")
        shares = " ".join(words)
        if shares:
            parts.append(f"{core} {shares}" if len(cores) > 1 else shares)
    if run.dma_bytes and run.time_ns:
        parts.append(f"DMA {run.dma_bytes / run.time_ns:.1f} GB/s")
    if run.seconds_host is not None:
        parts.append(f"simulated in {run.seconds_host:.2f} s")
    return ", ".join(parts)


def time_line(run: RunReport) -> str:
    """`41,220 cycles, 34.35 us on trn2`"""
    return f"{grouped(run.cycles)} cycles, {_time(run.time_ns)} on {run.target}"


def device_line(run: RunReport) -> str:
    """`on a device about 49 us: kernel 34.35 us + launch about 15 us; … likely within 20 % …`"""
    machine = "" if run.machine == "default" else f"machine {run.machine[:_HASH_SHOWN]}; "
    return f"{machine}on a device {device_time(run)}; {likely_error(run)}"


def device_time(run: RunReport) -> str:
    """`about 49 us: kernel 34.35 us + launch about 15 us`"""
    return (
        f"about {_rough(run.time_ns + run.launch_ns)}: kernel {_time(run.time_ns)} + "
        f"launch about {_rough(run.launch_ns)}"
    )


def likely_error(run: RunReport) -> str:
    """`the kernel's time is likely within 18 % of a device's (dma.engine_rate 9 %, …)`"""
    return (
        f"the kernel's time is likely within {run.trust.percent} % of a device's "
        f"({run.trust.words})"
    )


def about(run: RunReport, executable: Executable, command: str) -> list[tuple[str, str]]:
    """Return how far the time can be trusted and how to repeat the run, as names and values.

    `command` is the command line, empty for a run from Python. Nothing here changes from run to
    run.
    """
    notes = executable.meta
    rows = [
        ("on a device", device_time(run)),
        ("likely error", likely_error(run)),
        ("its figures", run.trust.path),
        ("checked against", run.trust.checked),
        ("arguments", "; ".join(_arguments(run, executable))),
        ("target", f"{run.target}, {plural(max(1, executable.cores), 'core')}"),
        ("figures of time", "built in" if run.machine == "default" else f"machine {run.machine}"),
        ("the time is", _order(executable.meta)),
        ("options", "; ".join(_options(run, executable)) or "defaults"),
        ("command", command),
        ("compiled by", f"{notes.get('producer', '?')}, as NKI {notes.get('nki', '?')}"),
        ("reported by", f"nkic {__version__}"),
        ("program", run.id),
    ]
    return [(name, value) for name, value in rows if value]


def _arguments(run: RunReport, executable: Executable) -> Iterator[str]:
    """Yield the tensors with their sources, then the other values of the specialisation."""
    for row in run.inputs:
        yield f"{row.name} {row.dtype}[{', '.join(map(str, row.shape))}] ({row.source})"
    tensors = {row.name for row in run.inputs}
    for name, value in executable.arguments.items():
        if name not in tensors:
            yield f"{name} = {value}"


def _order(notes: Mapping[str, str]) -> str:
    """Return in whose order the instructions were timed."""
    if notes.get("serial") == "yes":
        return "of the order that the author wrote, one instruction at a time"
    if notes.get("level") == "0":
        return "of the order that the author wrote, on each engine (-O0)"
    return (
        "of nkic's order (-O1, -O2), which may change the author's; the vendor's compiler may "
        "choose a third one"
    )


def _options(run: RunReport, executable: Executable) -> Iterator[str]:
    """Yield what was requested and changes values or time."""
    if executable.meta.get("serial") == "yes":
        yield "compiled without overlap"
    if not run.precise_fp:
        yield "float32 is kept between instructions"
    if run.accumulate != "measured":
        yield f"sums: {run.accumulate}"


def _rough(ns: float) -> str:
    return f"{ns / 1e6:,.2f} ms" if ns >= 1e6 else f"{ns / 1e3:,.0f} us"


def _time(ns: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.2f} {unit}"
    return f"{ns:.0f} ns"
