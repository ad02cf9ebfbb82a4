"""Sequential sums in float32 by BLAS, which adds the numbers of many rows side by side.

The product of rows with ones is each row's sum, in the order in which BLAS adds (`matmul.py`); the
sum so far is the first number of the next slab. That takes a third of the time of adding up columns
of the transposed rows. The sum starts with 0, so that a sum of zeros loses its sign, and the bits
of a NaN depend on BLAS: the result is only used if all sums are finite and nonzero.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import scratch

Floats = NDArray[np.float32]

SLAB = 128  # numbers of a row that are added at once
MIN_LENGTH = 256  # minimum length of a row for which this is faster
ROWS, COLUMNS = 32, 16  # multiples for which BLAS adds in order


def sum_rows(rows: Floats, out: Floats) -> bool:
    """Add up each row of (rows, elements) into `out`, (rows,); return whether this succeeded."""
    if rows.shape[1] < MIN_LENGTH or not _adds_in_order():
        return False
    _chain(rows, out)
    return bool(np.isfinite(out).all() and out.all())


def _chain(rows: Floats, out: Floats) -> None:
    count, elements = rows.shape
    shape = (-(-count // ROWS) * ROWS, 1 + SLAB)
    slab, sums = (
        scratch("chain", shape, np.float32),
        scratch("chain.found", (shape[0], COLUMNS), np.float32),
    )
    slab[...] = 0
    for start in range(0, elements, SLAB):
        numbers = rows[:, start : start + SLAB]
        slab[:count, 1 : 1 + numbers.shape[1]] = numbers
        slab[:, 1 + numbers.shape[1] :] = 0
        np.matmul(slab, _ones(), out=sums)
        slab[:, 0] = sums[:, 0]
    np.copyto(out, sums[:count, 0])


@cache
def _ones() -> Floats:
    return np.ones((1 + SLAB, COLUMNS), np.float32)


@cache
def _adds_in_order() -> bool:
    """Return whether this host's BLAS adds in order, tested on numbers that show the order."""
    return all(_agrees(*shape) for shape in ((128, 512), (64, 300), (32, 256), (1, 257)))


def _agrees(count: int, elements: int) -> bool:
    rows, sums = _probe(count, elements), np.empty(count, np.float32)
    _chain(rows, sums)
    return np.array_equal(sums, np.add.accumulate(rows, axis=1)[:, -1])


def _probe(count: int, elements: int) -> Any:
    draw = np.random.Generator(np.random.PCG64(elements))
    numbers = draw.standard_normal((count, elements), dtype=np.float32)
    return np.ldexp(numbers, draw.integers(-20, 20, numbers.shape))
