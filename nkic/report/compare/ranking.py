"""The order of runs, as far as the figures' likely errors let it be told.

Errors that two runs share cancel: a run and another that move as many bytes at one rate keep their
order at any rate. So the band of a ratio of times comes from the differences of the shares that
figures make of both critical paths, and from what the model itself may get wrong between two runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import NamedTuple

from nkic.base.text import aligned, clean
from nkic.report.run_report import RunReport
from nkic.report.trust import SHOWN, Reason

# Calibrated so that 90 % of the pairs of published candidates that are told apart are in the
# device's order (tests/timing/trusted.py, docs/timing.md).
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
        """Return a run by its report."""
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
        """What the band says."""
        if self.low == self.high:
            return "fastest"
        return "not distinguishable from the fastest" if self.low <= 1 else "slower"


@dataclass(frozen=True)
class Ranking:
    """Runs in order of time."""

    rows: Sequence[Ranked]

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.rows)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The order for a terminal."""
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
    """Return the runs in order of their times."""
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
    """Return the order of two runs."""
    width, ratio = exp(band(first, second)), second.time_ns / max(first.time_ns, 1e-3)
    effects = sorted(unshared(first, second).items(), key=lambda pair: (-pair[1], pair[0]))
    names = tuple(name for name, effect in effects[:SHOWN] if effect >= TOLD)
    apart = distinguishable(first, second)
    return Order(ratio, ratio / width, ratio * width, apart, names)
