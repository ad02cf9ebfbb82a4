"""Mean and variance of arrays (P, N)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import SummationOrder
from nkic.simulate.numerics.sums import fold

Array = NDArray[Any]
Floats = NDArray[np.float32]


def bn_stats(values: Floats, out: Floats, order: SummationOrder = "exact") -> None:
    """Write (count, mean, variance times count) of the even, then of the odd elements: (P, 6).

    With "exact" this is computed in float64, rounded once; otherwise every operation is rounded to
    float32. A single element has no odd ones: their count, mean and variance are 0.
    """
    for first in (0, 1):
        part = _copy(values[:, first::2], order)
        count = part.shape[1]
        mean = _total(part, order)[:, None] / part.dtype.type(max(count, 1))
        out[:, 3 * first] = count
        out[:, 3 * first + 1] = mean[:, 0]
        out[:, 3 * first + 2] = _total(np.square(part - mean), order)


def bn_aggr(statistics: Floats, out: Floats, order: SummationOrder = "exact") -> None:
    """Write (mean, variance), (P, 2), of any number of triples of `bn_stats`, (P, 3 n).

    With "exact" this is computed in float64, rounded once; for a total count of 0 both are 0.
    """
    count, mean, spread = (_copy(statistics[:, i::3], order) for i in range(3))
    total = _total(count, order)
    divisor = np.where(total == 0, total.dtype.type(1), total)
    centre = _total(count * mean, order) / divisor
    between = count * np.square(mean - centre[:, None])
    out[:, 0] = centre
    out[:, 1] = _total(spread + between, order) / divisor


def _copy(values: Floats, order: SummationOrder) -> Array:
    """Copy in C order, since the order of sums depends on the layout."""
    return np.array(values, np.float64 if order == "exact" else np.float32, order="C")


def _total(rows: Array, order: SummationOrder) -> Array:
    totals = np.zeros(len(rows), rows.dtype)
    if rows.shape[1]:
        fold(np.add, rows, totals, order)
    return totals
