"""Sequential sums in float32 by BLAS, which adds the numbers of many rows side by side.

The product of rows with ones is each row's sum, in the order in which BLAS adds (`matmul.py`); the
sum so far is the first number of the next slab. That takes a third of the time of adding up columns
of the transposed rows. The sum starts with 0, so that a sum of zeros loses its sign, and the bits
of a NaN depend on BLAS: the result is only used if all sums are finite and nonzero.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import scratch

Floats = NDArray[np.float32]

SLABS = (256, 128)  # numbers of a row that are added at once: the first that BLAS adds in order
MIN_LENGTH = 256  # minimum length of a row for which this is faster
ROWS, COLUMNS = 32, 16  # multiples for which BLAS adds in order


def sum_rows(rows: Floats, out: Floats) -> bool:
    """Add up each row of (rows, elements) into `out`, (rows,); return whether this succeeded."""
    size = _slab() if rows.shape[1] >= MIN_LENGTH else 0
    if size:
        _chain(rows, out, size)
    return bool(size and np.isfinite(out).all() and out.all())


def _chain(rows: Floats, out: Floats, size: int) -> None:
    """Add up `size` numbers of each row at a time, after the sum so far."""
    count, elements = rows.shape
    padded = -(-count // ROWS) * ROWS
    sums = scratch("chain.found", (padded, COLUMNS), np.float32)
    slab = scratch("chain", (padded, 1 + size), np.float32)
    slab[:, 0] = slab[count:] = 0
    first = 0
    if padded == count:  # the first numbers follow nothing, so that they are read in place
        first = size
        np.matmul(rows[:, :size], _ones(size), out=sums)
        slab[:, 0] = sums[:, 0]
    for start in range(first, elements, size):
        numbers = rows[:, start : start + size]
        width = 1 + numbers.shape[1]
        slab[:count, 1:width] = numbers
        slab[:, width:] = 0
        np.matmul(slab, _ones(1 + size), out=sums)
        slab[:, 0] = sums[:, 0]
    np.copyto(out, sums[:count, 0])


@lru_cache(maxsize=4)
def _ones(length: int) -> Floats:
    return np.ones((length, COLUMNS), np.float32)


@cache
def _slab() -> int:
    """Return how many numbers this host's BLAS adds in order, or 0.

    This is tested on numbers that show the order.
    """
    shapes = ((128, 512), (64, 300), (32, 256), (1, 257))
    return next((size for size in SLABS if all(_agrees(*shape, size) for shape in shapes)), 0)


def _agrees(count: int, elements: int, size: int) -> bool:
    rows, sums = _probe(count, elements), np.empty(count, np.float32)
    _chain(rows, sums, size)
    return np.array_equal(sums, np.add.accumulate(rows, axis=1)[:, -1])


def _probe(count: int, elements: int) -> Any:
    draw = np.random.Generator(np.random.PCG64(elements))
    numbers = draw.standard_normal((count, elements), dtype=np.float32)
    return np.ldexp(numbers, draw.integers(-20, 20, numbers.shape))
