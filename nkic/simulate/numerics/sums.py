"""Sums in the orders of `machine.orders`, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import SummationOrder
from nkic.machine.scratch import scratch
from nkic.simulate.numerics import chain
from nkic.simulate.numerics.vector import transpose

Floats = NDArray[np.float32]
Array = NDArray[Any]


def fold(combine: np.ufunc, rows: Array, out: Array, order: SummationOrder) -> None:
    """Combine the elements of each row of `rows`, (rows, elements), into `out`, (rows,).

    With "exact", the type is that of `rows`, which the caller has made float64, and the order is
    NumPy's along a contiguous row; `rows` must be in C order.
    """
    if order == "exact":
        combine.reduce(rows, axis=1, out=out)
    elif order == "float32":
        if combine is not np.add or not chain.sum_rows(rows, out):
            _sequential(combine, rows, out)
    else:
        np.copyto(out, tree(combine, list(rows.T)))


def _sequential(combine: np.ufunc, rows: Floats, out: Floats) -> None:
    """Combine sequentially: NumPy does so for whole rows of an array, not for a single column."""
    count, elements = rows.shape
    columns = scratch("sums.columns", (elements, max(count, 2)), np.float32)
    if count == 1:
        columns[:, 1] = 0
    transpose(rows, columns[:, :count])
    results = scratch("sums.found", (max(count, 2),), np.float32)
    combine.reduce(columns, axis=0, out=results)
    np.copyto(out, results[:count])


def tree(combine: np.ufunc, terms: list[Any]) -> Any:
    """Return the combination of `terms`, arrays of one shape, as a binary tree."""
    while len(terms) > 1:
        pairs = [combine(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
    return terms[0]
