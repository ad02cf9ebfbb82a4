"""Read a profile as untrusted input: the figures by which runs are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from nkic.base.diagnostics import bad_value
from nkic.base.text import clean
from nkic.report.trust import Reason
from nkic.report.views.profile import KIND, SCHEMA

LIMIT = 1 << 28  # bytes of a profile
FIGURES = {
    "cycles": "simulated time",
    "time_ns": "simulated time",
    "instructions": "instructions executed",
    "dma_bytes": "bytes moved by transfers",
    "hbm_read_bytes": "bytes read from HBM",
    "hbm_write_bytes": "bytes written to HBM",
    "sbuf_peak": "bytes of SBUF",
    "psum_banks": "banks of PSUM",
}


class Key(NamedTuple):
    """The identity of a source line: its text if known, because numbers shift with every edit and
    files are renamed; else its file and number.
    """

    path: str
    line: str


@dataclass(frozen=True)
class Cost:
    """The costs of a line, in nanoseconds and bytes. `place` is its file and number."""

    place: str
    critical_ns: float
    busy_ns: float
    hbm_bytes: float
    executions: float


@dataclass(frozen=True)
class Profile:
    """The comparable figures of a run; `figures` has the keys of FIGURES, `capacities` the sizes of
    memories, if known, and `reasons` the figures of the clock on its critical path, if recorded.
    """

    kernel: str
    target: str
    id: str
    figures: Mapping[str, float]
    instructions: Mapping[str, float]
    lines: Mapping[Key, Cost]
    capacities: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, Reason] = field(default_factory=dict)


def read_profile(data: bytes, path: str) -> Profile:
    """Return the profile in a file's bytes. Raises `UsageFailed` if they are not a profile."""
    try:
        record = json.loads(data, parse_constant=_no_number)
        return profile_of(record)
    except _MALFORMED as error:
        reason = (
            str(error) if isinstance(error, _Wrong) else "its fields are not those of a profile"
        )
        text = f"`{clean(path)}` is not a profile of a run: {reason}"
        help = "nki-run --json prints one"
        raise bad_value(text, help) from error


_MALFORMED = (
    *(ArithmeticError, ValueError, TypeError, LookupError, AttributeError),
    RecursionError,
)


class _Wrong(ValueError):
    """An error in a profile, described in words."""


def _no_number(word: str) -> float:
    raise _Wrong(f"it holds {word}")


def profile_of(record: Mapping[str, Any]) -> Profile:
    """Return the profile from its JSON, read from a file or just made."""
    if record.get("profile") != KIND:
        raise _Wrong("it does not say that it is one")
    version = str(record["profile_schema_version"])
    major = version.partition(".")[0]
    if major not in ("1", SCHEMA.partition(".")[0]):
        raise _Wrong(f"it has schema {version[:20]}, and this is nki-run for {SCHEMA}")
    counts = record["instructions" if major == "1" else "mix"]
    mix = {str(name): _number(count) for name, count in counts.items()}
    lines = dict(_lines(record["lines"]))
    all_figures = {name: _number(record[name]) for name in ("cycles", "time_ns", "dma_bytes")}
    all_figures |= {name: _number(record[name]) for name in ("sbuf_peak", "psum_banks")}
    all_figures["instructions"] = sum(mix.values())
    for name in ("hbm_read_bytes", "hbm_write_bytes"):
        all_figures[name] = sum(_number(row[name]) for row in record["lines"])
    figures = {name: all_figures[name] for name in FIGURES}
    kernel, target, id = (str(record[name]) for name in ("kernel", "target", "id"))
    sizes = record.get("resources", {})
    names = {"sbuf_peak": "sbuf_limit", "psum_banks": "psum_limit"}
    capacities = {n: _number(sizes[key]) for n, key in names.items() if key in sizes}
    reasons = dict(_reasons(record.get("trust", {})))
    return Profile(kernel, target, id, figures, mix, lines, capacities, reasons)


def _reasons(trust: Any) -> Iterator[tuple[str, Reason]]:
    for row in trust.get("reasons", ()):
        name = str(row["figure"])
        yield name, Reason(name, _number(row["share"]), _number(row["error"]))


def _lines(rows: Any) -> Iterator[tuple[Key, Cost]]:
    seen: dict[Key, int] = {}
    for row in rows:
        text, path, number = row.get("text"), str(row["path"]), int(row["line"])
        key = Key("", str(text)) if text else Key(path, f"line {number}")
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:  # the same text occurs twice
            key = key._replace(line=f"{key.line} ({seen[key]})")
        busy = sum(_number(time) for time in row["busy_ns"].values())
        moved = _number(row["hbm_read_bytes"]) + _number(row["hbm_write_bytes"])
        critical, count = _number(row["critical_ns"]), _number(row["executions"])
        place = f"{path.rpartition('/')[2]}:{number}" if number else "synchronisation"
        yield key, Cost(place, critical, busy, moved, count)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise _Wrong("a figure in it is not a number")
    return value
