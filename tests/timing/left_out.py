"""Fitted figures refitted without one operator, and checked on it, as Markdown.

    python -m tests.timing.left_out

Times follow from `trusted.csv`: a figure that makes a share of a kernel's critical path changes its
time by that share, to first order. Least squares over all kernels but one operator's, in which a
figure is drawn to its own value by its likely error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log

import numpy as np

from nkic.machine.clock import TABLE, Standing
from nkic.machine.targets import TRN2, likely_error
from nkic.report.critical import trusted
from tests.timing.__main__ import Found, rank_correlation
from tests.timing.trusted import WHOLE, Row, kept

LEAST = 0.02  # of a figure's shares, summed over all kernels: less tells nothing about it
SPREAD = 0.1  # of a kernel's time, beyond the figures
PRODUCTS = "tutorial's products"

Change = dict[str, float]  # logarithms by figure


def operators() -> dict[str, list[Row]]:
    """Return the kernels on trn2, by operator."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in kept():
        if row.target == TRN2.name:
            groups[PRODUCTS if row.group == WHOLE else row.group].append(row)
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


def within(rows: Sequence[Row], found: Sequence[Found]) -> int:
    """Return how many kernels are within what is stated for them."""
    stated = [trusted(row.shares, TRN2).percent for row in rows]
    return sum(abs(one.error) <= percent for one, percent in zip(found, stated, strict=True))


def table() -> list[str]:
    """Return the table, a line for each operator that is left out."""
    lines = [
        "| left out | n | median error | refitted without it | rank correlation | refitted "
        "| within the stated error | refitted | what changes most |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    groups = operators()
    for name, rows in groups.items():
        change = refitted([row for other, all in groups.items() if other != name for row in all])
        before, after = checked(rows, {}), checked(rows, change)
        medians = [f"{np.median([abs(f.error) for f in found]):.1f} %" for found in (before, after)]
        ranks = [f"{rank_correlation(found):.2f}" for found in (before, after)]
        counts = [str(within(rows, found)) for found in (before, after)]
        most = max(change, key=lambda figure: abs(change[figure]))
        cells = [name, str(len(rows)), *medians, *ranks, *counts]
        lines.append(f"| {' | '.join(cells)} | {most} {100 * (exp(change[most]) - 1):+.1f} % |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
