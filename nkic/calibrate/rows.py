"""Measured kernels as a CSV file: what people have who cannot run microkernels.

    file,latency_us,vector_active,bytes
    softmax.neff,41.7,63,16777216

`file` is a compiled kernel, beside the CSV file, and `latency_us` the time of the kernel on a
device, without its launch. Optional are the share of that time in percent for which engines were
active (`pe_active`, `vector_active`, `scalar_active`, `gpsimd_active`, `dma_active`), and the
`bytes` that transfers moved: where they differ from the program's own, the device ran another
program. Other columns are ignored. Files are untrusted: a bad cell is an error with its place.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path

from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean
from nkic.calibrate.profiles import Observation
from nkic.machine.clock import TABLE
from nkic.machine.engines import Engine
from nkic.machine.targets import TARGETS, Target
from nkic.neff.records import Executable, InstructionRecord
from nkic.pace import Clock, duration

FILE, LATENCY, BYTES = "file", "latency_us", "bytes"
ACTIVE = {
    "pe_active": Engine.TENSOR,
    "vector_active": Engine.VECTOR,
    "scalar_active": Engine.SCALAR,
    "gpsimd_active": Engine.GPSIMD,
    "dma_active": Engine.DMA,
}
MAX_BYTES, MAX_ROWS, MOST = 1 << 24, 1000, 1e15
SAME_BYTES = 0.1  # difference up to which the device moved what the program moves
Loaded = Callable[[str], Executable]


@dataclass(frozen=True, eq=False)
class Whole:
    """The time of a whole kernel, or that for which `engine` is busy in it."""

    executable: Executable
    figures: tuple[str, ...]
    engine: Engine | None = None

    def predicted(self, target: Target) -> float:
        """Return the predicted time in ns."""
        target = target.used_by(self.executable.cores)
        if self.engine is None:
            return (duration(self.executable, target) or 0) / 1000
        return self._work(target) / 1000 / max(1, self.executable.cores)

    def _work(self, target: Target) -> int:
        clock, total = Clock(self.executable, target), 0
        for stream in self.executable.streams:
            if stream.engine is self.engine:
                for record, count in stream.repeated():
                    if isinstance(record, InstructionRecord):
                        timing, _ = clock.of(record, stream.engine, stream.queue)
                        is_dma = stream.engine is Engine.DMA
                        total += count * (timing.pool if is_dma else timing.hold)
        return total

    @cached_property
    def moved(self) -> int:
        """The bytes that transfers move."""
        clock = Clock(self.executable, TARGETS[self.executable.target])
        return sum(
            count * clock.of(record, stream.engine, stream.queue)[1]
            for stream in self.executable.streams
            for record, count in stream.repeated()
            if isinstance(record, InstructionRecord)
        )


def read_rows(path: str, figures: Sequence[str], target: Target, load: Loaded) -> list[Observation]:
    """Read measured kernels, to which `figures` are to be fitted. Raises `UsageFailed`."""
    text = files.read_bytes(path, MAX_BYTES).decode("utf-8-sig", "replace")
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
    """Return the names of figures in `dma.engine_rate,vector.interval_sbuf`. Raises
    `UsageFailed`.
    """
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
