"""How near and in what order nkic predicts the checked kernels, as one table in Markdown.

    python -m tests.timing.left_out

docs/timing.md keeps it (`tests/unit/test_timing.py`). "Refitted without them": the fitted figures
are refitted to all kernels on trn2 but those of the row, and checked on these. Times follow from
`trusted.csv`: a figure that makes a share of a kernel's critical path changes its time by that
share, to first order. Least squares, in which a figure is drawn to its own value by its likely
error.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp, log

import numpy as np

from nkic.machine.clock import TABLE, Standing
from nkic.machine.targets import TARGETS, TRN1, TRN2, likely_error
from nkic.report.critical import trusted
from tests.timing.__main__ import Found, summary
from tests.timing.trusted import WHOLE, Row, kept, pairs

LEAST = 0.02  # of a figure's shares, summed over all kernels: less tells nothing about it
SPREAD = 0.1  # of a kernel's time, beyond the figures
EQUAL = 1e-4  # relative difference of predictions that are equal
NAMES = {TRN1.name: "tutorial's scans", TRN2.name: "tutorial's products"}

Change = dict[str, float]  # logarithms by figure


def operators() -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in kept():
        groups[NAMES[row.target] if row.group == WHOLE else row.group].append(row)
    return groups


def refitted(rows: Sequence[Row]) -> Change:
    """Return by how much the fitted figures change to reproduce these kernels."""
    names = [
        name
        for name, row in TABLE.items()
        if row.of(TRN2.generation).standing is Standing.FITTED
        and sum(abs(r.shares.get(name, 0.0)) for r in rows) >= LEAST
    ]
    slopes = np.array([[row.shares.get(name, 0.0) for name in names] for row in rows]) / SPREAD
    errors = np.array([log(row.measured / row.predicted) for row in rows]) / SPREAD
    pull = np.diag([1 / likely_error(name, TRN2) for name in names])
    changes = np.linalg.lstsq(
        np.vstack([slopes, pull]), np.concatenate([errors, np.zeros(len(names))]), rcond=None
    )[0]
    return dict(zip(names, map(float, changes), strict=True))


def checked(rows: Sequence[Row], change: Change) -> list[Found]:
    """Return the kernels with the times that the changed figures predict."""
    return [
        Found(r.measured, r.predicted * exp(sum(r.shares.get(n, 0) * x for n, x in change.items())))
        for r in rows
    ]


def without(name: str, groups: Mapping[str, Sequence[Row]]) -> str:
    """Return the median error of an operator with the figures that the others ask for."""
    if any(row.target != TRN2.name for row in groups[name]):
        return "-"
    others = [row for other, rows in groups.items() if other != name for row in rows]
    change = refitted([row for row in others if row.target == TRN2.name])
    return f"{np.median([abs(f.error) for f in checked(groups[name], change)]):.1f} %"


def picked(found: Sequence[Found]) -> str:
    """Return how far the measured times spread, and how much slower than the best the pick is.

    Of candidates that are predicted to be equal, the mean counts.
    """
    times = np.array([one.measured for one in found])
    predicted = np.array([one.predicted for one in found])
    pick = times[predicted <= predicted.min() * (1 + EQUAL)].mean()
    return " | ".join(f"{100 * (us / times.min() - 1):.1f} %" for us in (times.max(), pick))


def cells(rows: Sequence[Row]) -> str:
    """Return what is stated for kernels, how many are within, and which pairs are told apart."""
    stated = [trusted(row.shares, TARGETS[row.target]).percent for row in rows]
    inside = sum(100 * row.error <= percent for row, percent in zip(rows, stated, strict=True))
    count, right = pairs(rows)
    told = f"{len(right)} of {count} | {sum(right)}" if count else "- | -"
    return f"{np.median(stated):.0f} % | {inside} | {told}"


def table() -> list[str]:
    """Return the table, a line for each operator and one for all kernels."""
    lines = [
        "| kernels | n | median error | 90th percentile | worst | median, refitted without them "
        "| rank correlation | spread | pick slower by | stated, median | within "
        "| pairs told apart | of them right |",
        f"|---{'|---:' * 12}|",
    ]
    groups = operators()
    for name, rows in groups.items():
        found = checked(rows, {})
        one = rows[0].group == WHOLE
        errors, _, rank = summary(found).rpartition(" | ")
        order = f"{rank} | " + ("- | -" if one else picked(found))
        lines.append(f"| {name} | {errors} | {without(name, groups)} | {order} | {cells(rows)} |")
    every = kept()
    errors, _, _ = summary(checked(every, {})).rpartition(" | ")
    lines.append(f"| all | {errors} | - | - | - | - | {cells(every)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
