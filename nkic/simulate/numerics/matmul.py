"""The tensor engine's product.

Defined: every product of two float32 numbers is exact in float64. Of each 128 rows of the
operands the products are added in float64, first row to last, from 0; the sums of further
slabs of 128 rows (double-row and MX modes) are added after, in order; the total is rounded
once to float32. BLAS does this when it is given enough rows and columns, whatever processor it
runs on (other shapes take kernels that add in another order): so operands are padded with
zeros to multiples of 32 and 16. `_in_order` tries once whether this BLAS does, and a slow loop
takes its place if not.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import scratch

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Factor = Floats | Doubles  # whose products are exact in float64

SLAB = 128  # rows of the systolic array


def matmul(stationary: Factor, moving: Factor, out: Floats, accumulate: bool = False) -> None:
    """out[M, N] = stationary[K, M].T @ moving[K, N]; with `accumulate`, out += in float32."""
    (rows, columns), size = stationary.shape, moving.shape[1]
    padded = (-(-columns // 32) * 32, -(-size // 16) * 16)
    total = scratch("matmul.total", padded, np.float64)
    for start in range(0, rows, SLAB):
        slab = slice(start, start + SLAB)
        left = _padded("matmul.left", stationary[slab], padded[0])
        right = _padded("matmul.right", moving[slab], padded[1])
        if start == 0:
            _product(left, right, total)
            continue
        more = scratch("matmul.more", padded, np.float64)
        _product(left, right, more)
        np.add(total, more, out=total)
    _store(total[:columns, :size], out, accumulate)


def _store(total: Doubles, out: Floats, accumulate: bool) -> None:
    if not accumulate:
        np.copyto(out, total, casting="same_kind")
        return
    rounded = scratch("matmul.rounded", total.shape, np.float32)
    np.copyto(rounded, total, casting="same_kind")
    np.add(out, rounded, out=out)


def _padded(slot: str, operand: Factor, columns: int) -> Doubles:
    """The operand as float64 with zeros in the columns that it lacks."""
    rows, used = operand.shape
    wide: Doubles = scratch(slot, (rows, columns), np.float64)
    np.copyto(wide[:, :used], operand)
    wide[:, used:] = 0
    return wide


def _product(left: Doubles, right: Doubles, out: Doubles) -> None:
    if _in_order():
        np.matmul(left.T, right, out=out)
    else:
        _loop(left, right, out)


def _loop(left: Doubles, right: Doubles, out: Doubles) -> None:
    """The definition, row by row."""
    out[...] = 0
    term = np.empty_like(out)
    for column, row in zip(left, right, strict=True):
        np.multiply(column[:, None], row, out=term)
        np.add(out, term, out=out)


@cache
def _in_order() -> bool:
    """Whether this machine's BLAS adds products in order, tried on sums that would show it."""
    shapes = ((128, 128, 512), (128, 128, 16), (128, 32, 16), (37, 64, 48), (128, 96, 80))
    return all(_agrees(*shape) for shape in shapes)


def _agrees(rows: int, columns: int, size: int) -> bool:
    left, right = _probe(rows, columns, 1), _probe(rows, size, 2)
    fast, slow = np.empty((columns, size)), np.empty((columns, size))
    np.matmul(left.T, right, out=fast)
    _loop(left, right, slow)
    return np.array_equal(fast, slow)


def _probe(rows: int, columns: int, seed: int) -> Doubles:
    """Numbers of very different sizes, so that every order of addition rounds differently."""
    draw = np.random.Generator(np.random.PCG64(seed))
    exponent = draw.integers(-40, 40, (rows, columns))
    numbers = np.ldexp(draw.standard_normal((rows, columns), dtype=np.float32), exponent)
    return np.asarray(numbers, np.float64)
