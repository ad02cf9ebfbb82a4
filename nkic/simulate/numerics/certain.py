"""Sums of float32 in float64 by BLAS, for rows whose rounding to float32 does not depend on order.

A sum of n numbers in float64, in any order, differs from the exact sum by at most n 2^-53 times
the sum of magnitudes, to first order; in the defined order (`reduction.py`), which adds at most 16
numbers in one chain, by less than 40 2^-53 times. If the ends of an interval that exceeds both
round to the same float32, then the sum in the defined order does too. The product of rows with ones
takes half of the time of additions in the defined order, which the few other rows need.

The sum of magnitudes of a row is at most the root of n times the sum of all squares, which callers
know as a float32 that BLAS has added up: for at most `MAX_SIZE` numbers it is less than a tenth too
small, apart from squares below the least float32.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import blocks, scratch

Floats = NDArray[np.float32]

MIN_LENGTH = 512  # minimum length of a row for which this is faster
MIN_SIZE, MAX_SIZE = 1 << 15, 1 << 20  # numbers in all rows
_LEAST = 2.0**-149  # the least float32


def sum_rows(values: Floats, out: Floats, squares: float) -> NDArray[np.bool_] | None:
    """Write the sum of all axes of `values` that `out` does not have, where it is certain.

    Return where it is not, or None if it is certain everywhere. The other elements of `out` are
    undefined.
    """
    kept, length = out.size, prod(values.shape[out.ndim :])
    sums, first = scratch("certain", (kept,), np.float64), 0
    for rows in blocks(values.shape, cut=out.ndim):
        part = values[rows]
        last = first + prod(part.shape[: out.ndim])
        wide = scratch("certain.wide", (last - first, length), np.float64)
        np.copyto(wide.reshape(part.shape), part)
        np.dot(wide, _ones(length), out=sums[first:last])
        first = last
    bound = (length + 64) * 2.0**-53 * sqrt(length * 1.1 * (squares + values.size * _LEAST))
    return _round(sums.reshape(out.shape), bound, out)


def may_sum(values: Floats, kept: int) -> bool:
    """Return whether `sum_rows` is likely faster than additions in order, for `kept` sums."""
    return MIN_SIZE <= values.size <= MAX_SIZE and values.size >= MIN_LENGTH * kept


def _round(sums: NDArray[np.float64], bound: float, out: Floats) -> NDArray[np.bool_] | None:
    above = scratch("certain.above", out.shape, np.float32)
    np.add(sums, bound, out=above, casting="same_kind")
    np.subtract(sums, bound, out=out, casting="same_kind")
    certain: Any = out == above
    return None if certain.all() and out.all() else ~certain | (out == 0)  # zeros may be -0


@lru_cache(maxsize=8)
def _ones(length: int) -> NDArray[np.float64]:
    return np.ones(length)
