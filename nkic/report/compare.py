"""The changes between two runs, as text and as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, hypot, isfinite, log
from typing import Any, NamedTuple

from nkic.base.diagnostics import Diagnostic, UsageFailed, bad_value, make, suggestion
from nkic.base.text import aligned, clean
from nkic.report.critical import SHOWN, Reason
from nkic.report.profile import KIND, SCHEMA
from nkic.report.run_report import RunReport

# ---- Read a profile as untrusted input: the figures by which runs are compared ------------------

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
        return profile_of(json.loads(data, parse_constant=_no_number))
    except _MALFORMED as error:
        reason = (
            str(error) if isinstance(error, _Wrong) else "its fields are not those of a profile"
        )
        text = f"`{clean(path)}` is not a profile of a run: {reason}"
        raise bad_value(text, "nki-run --json prints one") from error


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


# ---- The order of runs, as far as the figures' likely errors let it be told ---------------------
# Errors that two runs share cancel: a run and another that move as many bytes at one rate keep
# their order at any rate. So the band of a ratio of times comes from the differences of the shares
# that figures make of both critical paths, and from what the model itself may get wrong between
# two runs.

# Calibrated so that 90 % of the pairs of published candidates that are told apart are in the
# device's order (tests/timing/left_out.py, docs/timing.md).
FLOOR = 0.08  # of two runs with equal shares
TOLD = 0.005  # error of a ratio by a figure that is named
WIDEST = 20.0  # exp of it is a number, whatever errors a profile states
UNSHARED = 0.2  # of two runs whose paths have nothing in common


class Timed(NamedTuple):
    """A run to be ranked: its name, time, and the figures on its critical path by name."""

    name: str
    time_ns: float
    reasons: Mapping[str, Reason]

    @classmethod
    def of(cls, name: str, run: RunReport) -> Timed:
        return cls(name, run.time_ns, {reason.figure: reason for reason in run.trust.reasons})


def band(first: Timed, second: Timed) -> float:
    """Return the likely error of the ratio of two times, as a share of it, at most `WIDEST`."""
    apart = sum(abs(_difference(first, second, name)) for name in _names(first, second)) / 2
    wide = hypot(FLOOR, UNSHARED * min(1.0, apart), *unshared(first, second).values())
    return min(wide, WIDEST)


def unshared(first: Timed, second: Timed) -> dict[str, float]:
    """Return by figure the error of the ratio of two times that follows from it."""
    return {
        name: abs(_difference(first, second, name))
        * max(run.reasons[name].error for run in (first, second) if name in run.reasons)
        for name in _names(first, second)
    }


def _names(first: Timed, second: Timed) -> list[str]:
    return sorted({*first.reasons, *second.reasons})


def _difference(first: Timed, second: Timed, name: str) -> float:
    shares = [run.reasons[name].share if name in run.reasons else 0.0 for run in (first, second)]
    return shares[0] - shares[1]


@dataclass(frozen=True)
class Ranked:
    """A run in its place. `times` is its time relative to the fastest run's, likely from `low` to
    `high`; `place` is that of the fastest run that it cannot be told from, from 1.
    """

    name: str
    time_ns: float
    place: int
    times: float
    low: float
    high: float

    @property
    def words(self) -> str:
        if self.low == self.high:
            return "fastest"
        return "not distinguishable from the fastest" if self.low <= 1 else "slower"


@dataclass(frozen=True)
class Ranking:
    rows: Sequence[Ranked]

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.rows)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        head = ("place", "run", "us", "times the fastest", "")
        rows = [
            (
                *(str(r.place), clean(r.name), f"{r.time_ns / 1000:,.2f}"),
                *(f"{r.times:.2f} ({r.low:.2f} to {r.high:.2f})", r.words),
            )
            for r in self.rows
        ]
        return aligned([head, *rows], right=(0, 2))


def ranked(runs: Sequence[Timed]) -> Ranking:
    ordered = sorted(runs, key=lambda run: (run.time_ns, run.name))
    rows = []
    for run in ordered:
        fastest = ordered[0]
        width = exp(band(fastest, run)) if run is not fastest else 1.0
        times = run.time_ns / fastest.time_ns if fastest.time_ns else 1.0
        place = 1 + next(i for i, other in enumerate(ordered) if not distinguishable(other, run))
        rows.append(Ranked(run.name, run.time_ns, place, times, times / width, times * width))
    return Ranking(rows)


def distinguishable(first: Timed, second: Timed) -> bool:
    """Whether the times differ by more than the band of their ratio."""
    if first is second or not first.time_ns or not second.time_ns:
        return first.time_ns != second.time_ns
    return abs(log(first.time_ns) - log(second.time_ns)) > band(first, second)


class Order(NamedTuple):
    """Whether a second run is faster than a first one: the ratio of their times, likely from `low`
    to `high`, which `figures` of the clock widen most.
    """

    ratio: float
    low: float
    high: float
    distinguishable: bool
    figures: tuple[str, ...]

    @property
    def words(self) -> str:
        """`the second takes 0.81 of the first's time, likely 0.75 to 0.88: faster`"""
        verdict = "faster" if self.ratio < 1 else "slower"
        if not self.distinguishable:
            verdict = "not distinguishable"
        why = f" ({', '.join(self.figures)})" if self.figures else ""
        span = f"likely {self.low:.2f} to {self.high:.2f}"
        return f"the second takes {self.ratio:.2f} of the first's time, {span}: {verdict}{why}"


def order(first: Timed, second: Timed) -> Order:
    width, ratio = exp(band(first, second)), second.time_ns / max(first.time_ns, 1e-3)
    effects = sorted(unshared(first, second).items(), key=lambda pair: (-pair[1], pair[0]))
    names = tuple(name for name, effect in effects[:SHOWN] if effect >= TOLD)
    return Order(ratio, ratio / width, ratio * width, distinguishable(first, second), names)


# --------------------------------------------------------------------------------------------------

LINES = 20  # source lines and instructions that are shown


class Row(NamedTuple):
    """A figure before and after; None if it is missing."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        return (self.after or 0) - (self.before or 0)

    @property
    def share(self) -> str:
        """The change relative to the value before."""
        if not self.before:
            return "new" if self.after else ""
        return f"{100 * self.change / self.before:+.1f}%"

    def cells(self) -> tuple[str, str, str, str]:
        change = f"{self.change:+,.0f} {self.share}" if self.change else "="
        return clean(self.name), _shown(self.before), _shown(self.after), change


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


@dataclass(frozen=True)
class Changes:
    """The rows that differ, greatest change first; `figures` has all, in order.

    Times of lines are nanoseconds on the critical path; `moved` counts bytes from and to HBM.
    """

    before: Profile
    after: Profile
    figures: Sequence[Row]
    lines: Sequence[Row]
    moved: Sequence[Row]
    instructions: Sequence[Row]

    @property
    def order(self) -> Order | None:
        """Which run is faster, as far as that can be told; None of runs without a record of it."""
        first, second = (
            Timed(clean(p.kernel), p.figures["time_ns"], p.reasons)
            for p in (self.before, self.after)
        )
        return order(first, second) if first.reasons and second.reasons else None

    @property
    def headline(self) -> str:
        """Both runs in one line."""
        a, b = self.before, self.after
        same = "the same program" if a.id == b.id else "another program"
        return f"{clean(a.kernel)} on {clean(a.target)}, then {clean(b.kernel)} on " + (
            f"{clean(b.target)}: {same}"
        )

    def tables(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield the tables with their titles, cut to the rows that are shown."""
        yield "figure", self.figures
        yield "line, ns on the critical path", self.lines[:LINES]
        yield "line, bytes from and to HBM", self.moved[:LINES]
        yield "instructions", self.instructions[:LINES]

    @property
    def text(self) -> str:
        parts = [self.headline + "\n", *([f"{self.order.words}\n"] if self.order else [])]
        for title, rows in self.tables():
            if rows:
                head = (title, "before", "after", "change")
                parts.append(aligned([head, *_cells(rows)], right=(1, 2, 3)))
        return "\n".join(parts)

    @property
    def markdown(self) -> str:
        """The changes for a pull request."""
        parts = [f"### {plain(self.headline)}\n"]
        parts += [f"{plain(self.order.words)}\n"] if self.order else []
        for title, rows in self.tables():
            if rows:
                head = f"| {title} | before | after | change |\n|---|--:|--:|--:|\n"
                lines = (f"| {' | '.join(map(plain, row))} |\n" for row in _cells(rows))
                parts.append(head + "".join(lines))
        return "\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        tables = ("figures", "lines", "moved", "instructions")
        tables_json = {name: [row._asdict() for row in getattr(self, name)] for name in tables}
        identity = ("kernel", "target", "id")
        profiles = {"before": asdict(self.before), "after": asdict(self.after)}
        return (
            {"schema": 1, "order": self.order._asdict() if self.order else None}
            | {k: {n: v[n] for n in identity} for k, v in profiles.items()}
            | tables_json
        )


_ESCAPES = {ord(c): f"\\{c}" for c in "\\*_{}[]#"} | {ord(c): f"&#{ord(c)};" for c in "<>&|`"}
_ESCAPES[ord("@")] = "@&#8203;"  # in a comment, it would call the person of that name


def plain(text: str) -> str:
    """Escape text for Markdown and HTML."""
    return text.translate(_ESCAPES)


def _cells(rows: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    return [row.cells() for row in rows]


def changes(before: Profile, after: Profile) -> Changes:
    """Compare two runs; source lines are matched by their text."""
    figures = [Row(name, before.figures[name], value) for name, value in after.figures.items()]
    mix = _differing(before.instructions, after.instructions, str, lambda value: value)
    return Changes(
        before,
        after,
        figures,
        _differing(before.lines, after.lines, _named(after, before), lambda c: c.critical_ns),
        _differing(before.lines, after.lines, _named(after, before), lambda c: c.hbm_bytes),
        mix,
    )


def _named(after: Profile, before: Profile) -> Callable[[Key], str]:
    def name(key: Key) -> str:
        cost: Cost = after.lines.get(key) or before.lines[key]
        return cost.place if key.path else f"{cost.place} {key.line[:60]}"

    return name


def _differing(before: Any, after: Any, name: Any, value: Callable[[Any], float]) -> list[Row]:
    rows = [
        Row(
            name(key),
            value(before[key]) if key in before else None,
            value(after[key]) if key in after else None,
        )
        for key in dict.fromkeys((*before, *after))
    ]
    return sorted((r for r in rows if r.change), key=lambda row: (-abs(row.change), row.name))


# ------------------------------------------------------------------------------------------------
# Limits on the figures of a run or a kernel: `cycles>+2%, sbuf_peak>24MiB, psum_banks>75%`.

_RULE = re.compile(r"([a-z_]+)\s*>\s*(\+?)\s*(\d{1,18}(?:\.\d{1,9})?)\s*(%|[KMGT](?:iB|B)?|B|)")
MEMORIES = ("sbuf_peak", "psum_banks")  # figures with a capacity
BYTES = ("dma_bytes", "hbm_read_bytes", "hbm_write_bytes", "sbuf_peak")
VALUES = ("nan", "inf")  # kinds of values in outputs, which are not figures
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Rule(NamedTuple):
    """An upper limit on `figure`: absolute, or above the baseline if `above`; if `percent`, in
    percent of the memory, or of the baseline.
    """

    figure: str
    limit: float
    above: bool
    percent: bool
    text: str

    def maximum(
        self, baseline: Mapping[str, float] | None, capacities: Mapping[str, float]
    ) -> float:
        """Return the greatest allowed value. Raises `UsageFailed`."""
        if self.percent and not self.above:
            if self.figure not in capacities:
                raise _bad(self.text, "the size of the memory is not known", "write a number")
            return capacities[self.figure] * self.limit / 100
        if not self.above or baseline is None:
            return self.limit
        before = baseline[self.figure]
        return before + (before * self.limit / 100 if self.percent else self.limit)


def rules(text: str | None, known: Collection[str] = FIGURES) -> list[Rule]:
    """Parse the comma-separated rules of --fail-if about figures. Raises `UsageFailed`."""
    words = [rule.strip() for rule in text.split(",")] if text is not None else []
    return [_rule(word, known) for word in words if word not in VALUES or known is not FIGURES]


def _rule(text: str, known: Collection[str]) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        help = "write cycles>+2%, sbuf_peak>24MiB or dma_bytes>+0"
        raise _bad(text, "expected FIGURE>LIMIT", help if known is FIGURES else "psum_banks>6")
    figure, plus, number, unit = match.groups()
    if figure not in known:
        if figure == "cycles":  # of several files
            raise _bad(text, "there is no baseline", "give --baseline FILE, from an earlier --json")
        raise _bad(text, f"there is no figure `{figure}`", suggestion(figure, known))
    if plus and known is not FIGURES:
        raise _bad(text, "a compilation has no baseline", f"write {figure}>{number}{unit}")
    if unit not in ("", "%") and figure not in BYTES:
        raise _bad(text, f"{FIGURES[figure]} are not counted in bytes", f"write {figure}>{number}")
    if unit == "%" and not plus and figure not in MEMORIES:
        help = f"write {figure}>+{number}% to compare with a baseline"
        raise _bad(text, "a percentage needs a baseline", help)
    scale = 1 if unit == "%" else _UNITS[unit[:1]]
    return Rule(figure, float(number) * scale, bool(plus), unit == "%", text)


def _bad(text: str, why: str, help: str) -> UsageFailed:
    return bad_value(f"--fail-if {clean(text)}: {why}", help)


def broken(
    rules: Sequence[Rule],
    figures: Mapping[str, float],
    baseline: Mapping[str, float] | None,
    capacities: Mapping[str, float],
    help: str = "`nki-run compare` shows which lines cost more, from the --json of both runs",
) -> list[Diagnostic]:
    """Return an error for each rule that the figures break. Raises `UsageFailed`."""
    maxima = [(rule, rule.maximum(baseline, capacities)) for rule in rules]
    return [
        _exceeded(rule, figures[rule.figure], maximum, baseline, help)
        for rule, maximum in maxima
        if figures[rule.figure] > maximum
    ]


def _exceeded(
    rule: Rule, value: float, maximum: float, baseline: Mapping[str, float] | None, help: str
) -> Diagnostic:
    name = f"{rule.figure} ({FIGURES[rule.figure]})"
    text = f"{name} is {value:,.0f}, more than {maximum:,.0f}"
    if rule.above and baseline is not None:
        text += f"; the baseline is {baseline[rule.figure]:,.0f}"
    return make("budget-exceeded", text, notes=[f"--fail-if {rule.text}"], help=help)
