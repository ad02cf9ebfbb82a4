"""Figures of time from a device: what profiler and people measured, and the figures that fit.

A profile is the JSON that `neuron-explorer view --output-format json` writes: an object with a list
`instruction`, each with `timestamp` and `duration` in ns, `opcode`, and a `label` that contains the
name that the kernel gave to the instruction (Neuron Explorer, device profiles). Files are
untrusted: a missing field or one of another type is an error with its place.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.pace import Clock, duration
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, did_you_mean
from nkic.base.text import clean
from nkic.machine.clock import TABLE
from nkic.machine.operands import AttributeKind, Tile
from nkic.machine.targets import PARTITIONS, TARGETS, Engine, Target
from nkic.report.measured import LATEST, MAX_BYTES, parsed, rows_of
from nkic.report.probes import ARRIVAL, INTERVAL, PROBES, REPEATS, ROW_LENGTH, SPAN, WARMING, Probe

PROBE, AFTER = "nkic_probe", "nkic_after"  # names of instructions
SHORTEST = 1  # ns: less than two cycles of any engine
WEIGHTS = "LDWEIGHTS"  # a part of a product that its MATMUL hides


class Predictable(Protocol):
    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that the measurement determines."""

    def predicted(self, target: Target) -> float:
        """Return the predicted time in ns."""


class Observation(NamedTuple):
    """A microkernel or kernel with its measured time in ns."""

    probe: Predictable
    ns: float


class _Timed(NamedTuple):
    start: float
    duration: float


def read_profiles(folder: str) -> list[Observation]:
    """Read the profiles of a folder, each named after its microkernel. Raises `UsageFailed`."""
    observations: list[Observation] = []
    for probe in PROBES:
        path = Path(folder) / f"{probe.name}.json"
        if files.is_file(path):
            data = files.read_bytes(str(path), MAX_BYTES)
            observations.append(observed(probe, parsed(data, str(path)), str(path)))
    if not observations:
        if not files.is_folder(folder):
            raise bad_value(f"{folder}: there is no such folder")
        names = ", ".join(sorted({f"{probe.name}.json" for probe in PROBES})[:3])
        raise bad_value(f"{folder}: it holds no profile of a microkernel", f"such as {names}")
    return observations


def observed(probe: Probe, profile: Any, path: str) -> Observation:
    """Return the measurement in a microkernel's profile. Raises `UsageFailed`."""
    ns = _measured(probe, profile, path)
    if ns < SHORTEST:
        text = f"{path}: the time measured is {ns:g} ns, but must be at least {SHORTEST} ns"
        raise bad_value(text)
    return Observation(probe, ns)


def _measured(probe: Probe, profile: Any, path: str) -> float:
    rows = rows_of(profile, path)
    seen = sorted(_named(rows, PROBE, path))
    if probe.quantity == ARRIVAL:
        after = sorted(_named(rows, AFTER, path))
        if len(seen) != 1 or len(after) != 1:
            raise bad_value(
                f"{path}: one instruction named {PROBE} and one named {AFTER} are expected"
            )
        return after[0].start - seen[0].start
    if probe.quantity == SPAN:
        if len(seen) != 2:
            raise bad_value(f"{path}: {len(seen)} instructions are named {PROBE}, and not two")
        return seen[1].start - seen[0].start
    if len(seen) < REPEATS or len(seen) % REPEATS:
        raise bad_value(f"{path}: {len(seen)} instructions are named {PROBE}, of {REPEATS} repeats")
    parts = len(seen) // REPEATS  # a product in float32 is two instructions
    if probe.quantity == INTERVAL:
        starts = [instruction.start for instruction in seen[::parts]]
        # Some may wait: for an activation table, or among triggers for the store.
        return median(b - a for a, b in pairwise(starts))
    pairs = zip(seen[::parts], seen[parts - 1 :: parts], strict=True)
    ends = [last.start + last.duration - first.start for first, last in pairs]
    return median(ends[1:])


def _named(rows: list[Any], name: str, path: str) -> Iterable[_Timed]:
    for row in rows:
        if not isinstance(row, Mapping) or name not in str(row.get("label", "")):
            continue
        if row.get("opcode") == WEIGHTS:
            continue
        start, duration = row.get("timestamp"), row.get("duration")
        if not _is_time(start) or not _is_time(duration):
            raise bad_value(f"{path}: an instruction has no timestamp or duration in ns")
        yield _Timed(float(start), float(duration))


def _is_time(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and 0 <= value < LATEST


# ------------------------------------------------------------------------------------------------
# Timing figures by least squares: those with which the simulated time is closest to the
# observed.

STEPS = 30
NUDGE = 1e-3  # share by which a figure is changed to find its effect
PULL = 1e-6  # weight of a figure's default: matters only where the observations determine nothing
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """The fitted figures by name, and the error of the simulated time with and without them.

    `error` and `before` are medians of relative errors, as is `left_out`: of each observation with
    the figures that the others give. `silent` are figures of which no observation tells anything.
    """

    figures: Mapping[str, float]
    error: float
    before: float
    left_out: float = 0.0
    silent: Sequence[str] = ()


def fitted(observations: Sequence[Observation], target: Target) -> Fit:
    """Fit the figures that the observations concern, by Gauss-Newton from the target's own."""
    names = sorted({name for observation in observations for name in observation.probe.figures})
    first = np.array([target.figures[name] for name in names])
    scale = np.maximum(np.abs(first), 1.0)
    share = first / scale
    for _ in range(STEPS):
        errors = _relative_errors(observations, target, names, share * scale)
        slopes = _slopes(observations, target, names, share, scale, errors)
        lhs = np.vstack([slopes, PULL * np.eye(len(names))])
        rhs = np.concatenate([-errors, PULL * (first / scale - share)])
        change = np.linalg.lstsq(lhs, rhs, rcond=None)[0]
        share = np.array([_bounded(n, v) for n, v in zip(names, share + change, strict=True)])
        if np.abs(change).max() < 1e-9:
            break
    after = _relative_errors(observations, target, names, share * scale)
    start = _relative_errors(observations, target, names, first)
    figures = {n: float(v) for n, v in zip(names, share * scale, strict=True)}
    slopes = _slopes(observations, target, names, share, scale, after)
    silent = [name for name, column in zip(names, slopes.T, strict=True) if not column.any()]
    error, before, left_out = (
        float(np.median(np.abs(errors))) for errors in (after, start, _left_out(slopes, after))
    )
    return Fit(figures, error, before, left_out, silent)


def _left_out(slopes: Vector, errors: Vector) -> Vector:
    """Return the error of each observation with the figures that follow from the others.

    Near the solution the problem is linear, and leaving a row out changes its error by a factor.
    """
    inverse = np.linalg.inv(slopes.T @ slopes + PULL * np.eye(slopes.shape[1]))
    weights = np.einsum("ij,jk,ik->i", slopes, inverse, slopes)
    return np.asarray(errors / np.maximum(1 - weights, PULL))


def _bounded(name: str, share: float) -> float:
    return max(share, 1e-3) if TABLE[name].minimum > 0 else max(share, 0.0)


def _relative_errors(
    observations: Sequence[Observation], target: Target, names: list[str], values: Vector
) -> Vector:
    figures = {**target.figures, **dict(zip(names, map(float, values), strict=True))}
    machine = replace(target, figures=MappingProxyType(figures))
    return np.array(
        [observation.probe.predicted(machine) / observation.ns - 1 for observation in observations]
    )


def _slopes(
    observations: Sequence[Observation],
    target: Target,
    names: list[str],
    share: Vector,
    scale: Vector,
    errors: Vector,
) -> Vector:
    columns = []
    for i in range(len(names)):
        moved = share.copy()
        # Cycles are integers: the slope needs at least two of them.
        moved[i] += NUDGE if TABLE[names[i]].unit == "share" else max(NUDGE, 2 / scale[i])
        after = _relative_errors(observations, target, names, moved * scale)
        columns.append((after - errors) / (moved[i] - share[i]))
    return np.array(columns).T


# ---- Measured kernels as a CSV file: what people have who cannot run microkernels ---------------
#     file,latency_us,vector_active,bytes
#     softmax.neff,41.7,63,16777216
#
# `file` is a compiled kernel, beside the CSV file, and `latency_us` the time of the kernel on a
# device, without its launch. Optional are the share of that time in percent for which engines were
# active (`pe_active`, `vector_active`, `scalar_active`, `gpsimd_active`, `dma_active`), and the
# `bytes` that transfers moved: where they differ from the program's own, the device ran another
# program. Other columns are ignored. Files are untrusted: a bad cell is an error with its place.

FILE, LATENCY, BYTES = "file", "latency_us", "bytes"
ACTIVE = {
    "pe_active": Engine.TENSOR,
    "vector_active": Engine.VECTOR,
    "scalar_active": Engine.SCALAR,
    "gpsimd_active": Engine.GPSIMD,
    "dma_active": Engine.DMA,
}
MAX_ROW_BYTES, MAX_ROWS, MOST = 1 << 24, 1000, 1e15
SAME_BYTES = 0.1  # difference up to which the device moved what the program moves
Loaded = Callable[[str], Executable]


@dataclass(frozen=True, eq=False)
class Whole:
    """The time of a whole kernel, or that for which `engine` is busy in it."""

    executable: Executable
    figures: tuple[str, ...]
    engine: Engine | None = None

    def predicted(self, target: Target) -> float:
        target = target.used_by(self.executable.cores)
        if self.engine is None:
            return (duration(self.executable, target) or 0) / 1000
        return self._work(target) / 1000 / max(1, self.executable.cores)

    def _work(self, target: Target) -> int:
        clock, total = Clock(self.executable, target), 0
        for stream in self.executable.streams:
            if stream.engine is self.engine:
                for record, count in stream.instructions():
                    timing, _ = clock.of(record, stream.engine, stream.queue)
                    is_dma = stream.engine is Engine.DMA
                    total += count * (timing.pool if is_dma else timing.hold)
        return total

    @cached_property
    def moved(self) -> int:
        clock = Clock(self.executable, TARGETS[self.executable.target])
        return sum(
            count * clock.of(record, stream.engine, stream.queue)[1]
            for stream in self.executable.streams
            for record, count in stream.instructions()
        )


def read_rows(path: str, figures: Sequence[str], target: Target, load: Loaded) -> list[Observation]:
    """Read measured kernels, to which `figures` are to be fitted. Raises `UsageFailed`."""
    text = files.read_bytes(path, MAX_ROW_BYTES).decode("utf-8-sig", "replace")
    reader = csv.DictReader(text.splitlines())
    for name in (FILE, LATENCY):
        if name not in (reader.fieldnames or ()):
            help = f"a first line such as {FILE},{LATENCY},vector_active,{BYTES}"
            raise bad_value(f"{path}: it has no column `{name}`", help)
    observations: list[Observation] = []
    for row in reader:
        place = f"{path}:{reader.line_num}"
        if len(observations) > MAX_ROWS:
            raise bad_value(f"{place}: there are more than {MAX_ROWS} observations")
        observations += _row(row, place, Path(path).parent, tuple(figures), target, load)
    if not observations:
        raise bad_value(f"{path}: it has no rows")
    return observations


def _row(
    row: Mapping[str, str | None],
    place: str,
    folder: Path,
    figures: tuple[str, ...],
    target: Target,
    load: Loaded,
) -> Iterator[Observation]:
    name = row.get(FILE) or ""
    if not name.strip() or None in row:
        raise bad_value(f"{place}: a row has as many cells as the first line, and names a file")
    if name.endswith(".py"):
        raise bad_value(
            f"{place}: `{clean(name)}` is a source",
            "compile it with the types that were measured, and name the .neff file",
        )
    latency = _number(row, LATENCY, place)
    if latency is None:
        raise bad_value(f"{place}: it has no {LATENCY}")
    executable = _loaded(folder / name, place, load)
    if executable.target != target.name:
        text = f"{place}: `{clean(name)}` is compiled for {executable.target}, not {target.name}"
        raise bad_value(text, f"pass --target {executable.target}")
    whole = Whole(executable, figures)
    _check_bytes(whole, _number(row, BYTES, place), place)
    yield Observation(whole, latency * 1000)
    for column, engine in ACTIVE.items():
        percent = _number(row, column, place, 100)
        busy = Whole(executable, figures, engine)
        if percent and busy.predicted(target):
            yield Observation(busy, latency * 10 * percent)


def _loaded(path: Path, place: str, load: Loaded) -> Executable:
    try:
        return load(str(path))
    except UsageFailed as refused:
        raise bad_value(f"{place}: {refused.diagnostics[0].message}") from refused


def _check_bytes(whole: Whole, measured: float | None, place: str) -> None:
    if measured is None or abs(whole.moved - measured) <= SAME_BYTES * measured:
        return
    text = f"{place}: the device moved {measured:,.0f} bytes, and the program moves {whole.moved:,}"
    raise bad_value(text, "leave the row out: the device's compiler made another program of it")


def _number(
    row: Mapping[str, str | None], column: str, place: str, most: float = MOST
) -> float | None:
    """Return the number in a cell; None if it is empty. Raises `UsageFailed`."""
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    least = 0.0 if column in ACTIVE else 1e-9
    if not isfinite(value) or not least <= value <= most:
        upper = f" and up to {most:g}" if most < MOST else ""
        text = f"{place}: {column} is `{clean(text[:40])}`, not a number above 0{upper}"
        raise bad_value(text)
    return value


def figures_named(text: str | None) -> list[str]:
    """Return the figures' names in `dma.engine_rate,vector.interval_sbuf`. Raises `UsageFailed`."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if not names:
        raise bad_value(
            "rows of kernels do not say which figures to fit",
            "name some: --figures dma.engine_rate,vector.interval_sbuf",
        )
    for name in names:
        if name not in TABLE:
            help = did_you_mean(name, TABLE) or "`nki-run calibrate --print machine` lists them"
            raise bad_value(f"--figures: there is no parameter `{clean(name)}`", help)
    return list(dict.fromkeys(names))


# ---- The microkernels as a Python file for a device ---------------------------------------------
# It holds NKI kernels written from the instruction table, and code that runs and profiles them
# with the vendor's tools.

HEAD = '''\
"""Microkernels for `nki-run calibrate`. On a machine with a Neuron device:

    python microkernels.py profiles       # runs and profiles each, and writes profiles/NAME.json
    nki-run calibrate profiles > machine.toml

Written by `nki-run calibrate --print microkernels`.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


'''
TAIL = f'''\
KERNELS = [%s]


def profiled(kernel, folder):
    """Runs one kernel with its artifacts kept, and has the profiler write what it saw."""
    name = kernel.__name__
    kept = folder / name
    kept.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--one", name]
    subprocess.run(command, check=True, env=dict(os.environ, NKI_ARTIFACTS_DIR=str(kept)))
    neff, trace = kept / "kernel.neff", kept / "profile.ntff"
    explorer = "neuron-explorer"
    subprocess.run([explorer, "capture", "-n", neff, "-s", trace], check=True)
    written = ["--output-format", "json", "--output-file", folder / f"{{name}}.json"]
    subprocess.run([explorer, "view", "-n", neff, "-s", trace, *written], check=True)


def main(words):
    if words[:1] == ["--one"]:
        (kernel,) = [k for k in KERNELS if k.__name__ == words[1]]
        kernel(np.ones(({PARTITIONS}, {ROW_LENGTH}), np.float32))
        return
    for kernel in KERNELS:
        profiled(kernel, Path(words[0] if words else "profiles"))


if __name__ == "__main__":
    main(sys.argv[1:])
'''


def source() -> str:
    kernels = {probe.name: probe for probe in PROBES}
    text = "\n\n".join(kernel_of(probe) for probe in kernels.values())
    return f"{HEAD}{text}\n\n{TAIL % ', '.join(kernels)}"


def kernel_of(probe: Probe) -> str:
    body = "".join(f"    {line}\n" for line in _lines(probe))
    return f"@nki.jit\ndef {probe.name}(x):\n{body}"


def _lines(probe: Probe) -> Iterator[str]:
    dst = probe.operands["dst"]
    yield f"out = {_tensor(dst, 'shared_hbm')}"
    for name, tile in probe.operands.items():
        if name != "dst":
            yield from _source(name, tile)
    if probe.engine is Engine.TENSOR and probe.warm:
        yield f"warm = {_tensor(dst, dst.buffer.value)}"
        for _ in range(WARMING):
            yield _call(probe, "warm")
    last = yield from _bodies(probe, dst)
    yield f"after = {_tensor(dst, 'sbuf')}"
    engine = ", engine=nisa.engine.vector" if probe.engine is Engine.GPSIMD else ""
    yield f'nisa.tensor_copy(dst=after, src=dst{last}{engine}, name="{AFTER}")'
    yield "nisa.dma_copy(dst=out, src=after)"
    yield "return out"


def _bodies(probe: Probe, dst: Tile) -> Generator[str, None, int]:
    """Yield the instructions that are measured, and return the number of the last result."""
    if probe.quantity == SPAN:  # on one sum, which keeps them in order
        yield f"dst0 = {_tensor(dst, dst.buffer.value)}"
        yield _call(probe, "dst0", f"{PROBE}_0")
        for _ in range(WARMING):
            yield _call(probe, "dst0", is_other=True)
        yield _call(probe, "dst0", f"{PROBE}_1", is_other=True)
        return 0
    repeats = 1 if probe.quantity == ARRIVAL else REPEATS
    for i in range(repeats):
        yield f"dst{i} = {_tensor(dst, dst.buffer.value)}"
        yield _call(probe, f"dst{i}", f"{PROBE}_{i}", is_other=i % 2 == 1)
    return repeats - 1


def _source(name: str, tile: Tile) -> Iterator[str]:
    """Yield the definition of an operand: a tile or HBM of ones, unless it is the argument."""
    if tile.on_chip:
        yield f"{name} = {_tensor(tile, tile.buffer.value)}"
        yield f"nisa.memset(dst={name}, value=1.0)"
    elif not _is_argument(tile):
        yield f"ones = {_tensor(tile, 'sbuf')}"
        yield "nisa.memset(dst=ones, value=1.0)"
        yield f"{name} = {_tensor(tile, 'private_hbm')}"
        yield f"nisa.dma_copy(dst={name}, src=ones)"
    if tile.dynamic:
        yield "at = nisa.register_alloc(0)"


def _is_argument(tile: Tile) -> bool:
    """Whether the tile consists of columns of the kernel's argument."""
    return not tile.on_chip and tile.dtype.name == "float32"


def _tensor(tile: Tile, buffer: str) -> str:
    shape = f"({PARTITIONS}, {tile.dims[-1][1]})"
    return f"nl.ndarray({shape}, dtype=nl.{tile.dtype.name}, buffer=nl.{buffer})"


def _call(probe: Probe, dst: str, label: str = "", is_other: bool = False) -> str:
    """Return the instruction, with the operands of the table."""
    arguments = [f"dst={dst}"]
    arguments += [f"{n}={_read(n, tile)}" for n, tile in probe.operands.items() if n != "dst"]
    arguments += [f"{name}={value!r}" for name, value in probe.numbers.items()]
    kinds = {a.name: a.kind for a in probe.row.attributes}
    attributes = {**probe.attributes, **(probe.alternate if is_other else {})}
    arguments += [f"{n}={_value(probe, n, kinds[n], v)}" for n, v in attributes.items()]
    if probe.row.has_engine_parameter:
        arguments.append(f"engine=nisa.engine.{probe.engine.value}")
    arguments += [f'name="{label}"'] if label else []
    return f"nisa.{probe.row_name}({', '.join(arguments)})"


def _read(name: str, tile: Tile) -> str:
    columns = tile.dims[-1][1]
    if _is_argument(tile):
        return f"x[:, 0:{columns}]"
    return f"{name}[:, nl.ds(at, {columns})]" if tile.dynamic else name


def _value(probe: Probe, name: str, kind: AttributeKind, value: Any) -> str:
    if kind in (AttributeKind.ALU, AttributeKind.ACTIVATION):
        return f"nl.{value}"
    if kind is AttributeKind.CHOICE:
        return f"nisa.{name}.{value}"
    return repr([list(pair) for pair in value]) if kind is AttributeKind.PATTERN else repr(value)
