"""The vendor's profile of a kernel beside a simulated run, instruction by instruction.

A profile is a folder of Neuron Explorer's tables with `Instruction.parquet` (which needs pyarrow)
or that file, its `Instruction.csv`, or the JSON of `--output-format json`. An instruction has a
start, a duration in ns, an engine, and the source line that it comes from; the kernel must have
been compiled with debug information. Executions of one line on one engine are matched in order.
Files are untrusted: a missing field or one of another type is an error with its place.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nkic.artifact.events import Trace
from nkic.base import files
from nkic.base.diagnostics import bad_value, need
from nkic.base.text import aligned, clean
from nkic.machine.targets import SHORT_NAMES, Engine
from nkic.report.critical import Lines

MAX_BYTES, LATEST = 1 << 30, 1 << 63  # of a profile; ns, of a timestamp
TABLE = "Instruction.parquet"
# Fields by name in tables, and in JSON.
START, DURATION = ("start_ts", "timestamp"), ("duration_ns", "duration")
PLACES = ("nki_source_location", "bir_debug_info_source_location")
HIDDEN = ("LDWEIGHTS", "EVENT_SEMAPHORE", "DRAIN", "NOP")  # parts of others, and waiting
SHOWN = 40
NAMES = {
    **{e.value: e for e in Engine},
    **{"act": Engine.SCALAR, "activation": Engine.SCALAR, "pool": Engine.GPSIMD, "sp": Engine.SYNC},
    **{"pe": Engine.TENSOR, "tensormatrix": Engine.TENSOR, "dve": Engine.VECTOR},
}
_PLACE = re.compile(r"([^\s\"'\[\],]+):(\d{1,9})")

Key = tuple[str, int, str]  # the file's name, the line, the engine


class Execution(NamedTuple):
    """One execution of an instruction, in ns."""

    start: float
    end: float


@dataclass(frozen=True)
class Beside:
    """An instruction as predicted and as measured: median durations in ns from start to end.

    `matched` executions were found in both; `predicted_runs` and `measured_runs` are all of them.
    """

    line: str
    engine: str
    predicted_ns: float | None
    measured_ns: float | None
    matched: int
    predicted_runs: int
    measured_runs: int

    @property
    def words(self) -> str:
        """`line 61 of k.py (DVE): predicted 1.20, measured 2.60 us`"""
        name, _, number = self.line.rpartition(":")
        times = f"predicted {_us(self.predicted_ns)}, measured {_us(self.measured_ns)} us"
        counts = ""
        if self.predicted_runs != self.measured_runs:
            counts = f", {self.predicted_runs} times predicted and {self.measured_runs} measured"
        return f"line {number} of {clean(name)} ({self.engine}): {times}{counts}"

    @property
    def lost(self) -> float:
        """The time by which all executions together are mispredicted, in ns."""
        predicted = (self.predicted_ns or 0.0) * self.predicted_runs
        return abs(predicted - (self.measured_ns or 0.0) * self.measured_runs)


def _us(ns: float | None) -> str:
    return "none" if ns is None else f"{ns / 1000:.2f}"


def text(rows: Sequence[Beside]) -> str:
    """Return the rows for a terminal, greatest misprediction first."""
    head = ("line", "engine", "runs", "predicted us", "measured us", "ratio")
    cells = []
    for row in rows[:SHOWN]:
        first, second = row.predicted_ns, row.measured_ns
        ratio = f"{second / first:.2f}" if first and second else ""
        runs = f"{row.predicted_runs}"
        if row.measured_runs != row.predicted_runs:
            runs += f" and {row.measured_runs}"
        times = (_us(first), _us(second), ratio)
        cells.append((clean(row.line), row.engine, runs, *times))
    left = len(rows) - SHOWN
    more = f"{left} more rows: --json has them\n" if left > 0 else ""
    return f"{aligned([head, *cells], right=(2, 3, 4, 5))}{more}"


def beside(trace: Trace, path: str) -> list[Beside]:
    """Return a profile beside a run, greatest misprediction first. Raises `UsageFailed`."""
    predicted, measured = _predicted(trace), _measured(read(path), path)
    if not predicted.keys() & measured.keys():
        text = f"{clean(path)}: no instruction is from a line of this kernel"
        help = "profile a kernel that was compiled with debug information (NKI_DEBUG_INFO=True)"
        raise bad_value(text, help)
    rows = [
        _row(key, predicted.get(key, []), measured.get(key, []))
        for key in {**predicted, **measured}
        if key[0] in {name for name, *_ in predicted}
    ]
    return sorted(rows, key=lambda row: (not row.matched, -row.lost, row.line, row.engine))


def _row(key: Key, predicted: list[Execution], measured: list[Execution]) -> Beside:
    parts = len(measured) // len(predicted) if predicted else 1
    if parts > 1 and len(measured) == parts * len(predicted):  # as a product in several passes
        measured = [
            Execution(measured[i].start, measured[i + parts - 1].end)
            for i in range(0, len(measured), parts)
        ]
    times = [[e.end - e.start for e in runs] for runs in (predicted, measured)]
    matched = min(map(len, times))
    first, second = (median(found[: matched or None]) if found else None for found in times)
    line = f"{key[0]}:{key[1]}"
    return Beside(line, key[2], first, second, matched, len(predicted), len(measured))


def _predicted(trace: Trace) -> dict[Key, list[Execution]]:
    lines, found = Lines(trace.executable), defaultdict(list)
    for event in trace.events:
        if event.record.row is None:
            continue
        engine, line = trace.streams[event.stream].engine, lines.of(event.record.place)
        key = Path(line.path).name, line.number, SHORT_NAMES[engine]
        start = event.ready if engine is Engine.DMA else event.start
        found[key].append(Execution(start / 1000, event.done / 1000))
    return {key: sorted(runs) for key, runs in found.items()}


def _measured(rows: Iterable[Mapping[str, Any]], path: str) -> dict[Key, list[Execution]]:
    found: dict[Key, list[Execution]] = defaultdict(list)
    for number, row in enumerate(rows, 1):
        place = f"{clean(path)}: instruction {number}"
        if not isinstance(row, Mapping):
            raise bad_value(f"{place} is not an object with fields")
        if str(row.get("opcode", "")).upper() in HIDDEN:
            continue
        start, duration = _time(row, START, place), _time(row, DURATION, place)
        if line := _line(row):
            engine, times = _engine(row), Execution(start, start + duration)
            if row.get("dma_trigger_end_ts") not in (None, ""):  # it triggers a transfer
                end = _time(row, ("dma_trigger_end_ts",), place)
                engine, times = SHORT_NAMES[Engine.DMA], Execution(start, end)
            found[(*line, engine)].append(times)
    return {key: sorted(runs) for key, runs in found.items()}


def _line(row: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the innermost source line of an instruction; None if it says none."""
    for field in PLACES:
        places = _PLACE.findall(str(row.get(field) or ""))
        if places:
            name, number = places[-1]
            return re.split(r"[/\\]", name)[-1], int(number)
    return None


def _engine(row: Mapping[str, Any]) -> str:
    word = str(row.get("engine") or row.get("label") or "").lower()
    engine = next((e for name, e in NAMES.items() if word.startswith(name)), None)
    return SHORT_NAMES[engine] if engine is not None else clean(word[:20])


def _time(row: Mapping[str, Any], fields: Sequence[str], place: str) -> float:
    value = next((row[name] for name in fields if name in row), None)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LATEST:
        raise bad_value(f"{place} has no {fields[0]} in ns")
    return float(value)


def read(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the instructions of a profile. Raises `UsageFailed`."""
    if files.is_folder(path):
        path = str(Path(path) / TABLE)
    data = files.read_bytes(path, MAX_BYTES)
    if path.endswith(".parquet"):
        yield from _parquet(data, path)
    elif path.endswith(".csv"):
        yield from csv.DictReader(data.decode("utf-8-sig", "replace").splitlines())
    else:
        yield from rows_of(parsed(data, path), path)


def parsed(data: bytes, path: str) -> Any:
    """Return the JSON of a profile. Raises `UsageFailed`."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_value(f"{clean(path)}: no JSON: {error}") from error


def rows_of(profile: Any, path: str) -> list[Any]:
    """Return the instructions of a profile in JSON. Raises `UsageFailed`."""
    rows = profile.get("instruction") if isinstance(profile, dict) else None
    if not isinstance(rows, list):
        help = "write it with --output-format json"
        raise bad_value(f"{clean(path)}: it has no list `instruction`", help)
    return rows


def _parquet(data: bytes, path: str) -> Iterator[Mapping[str, Any]]:
    instead = ", or export the instructions as CSV"
    need(f"{clean(path)}: Parquet needs", "pyarrow", instead=instead)
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(io.BytesIO(data))
        names = {*START, *DURATION, *PLACES, "engine", "opcode", "dma_trigger_end_ts"}
        for batch in table.iter_batches(columns=[n for n in table.schema.names if n in names]):
            yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise bad_value(f"{clean(path)}: not a Parquet table: {clean(str(error)[:80])}") from error
