"""Vector engine instructions that are more than an operator, on arrays (P, N)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import blocks, scratch

Array = NDArray[Any]
Floats = NDArray[np.float32]

LINE = 64  # bytes of a cache line


def select(condition: NDArray[np.bool_], on_true: Array, on_false: Array, out: Array) -> None:
    """Select `on_true` where the condition holds, else `on_false`, bitwise (any 32-bit type).

    Both broadcast to `out`. A blend of bits takes the same time for every mask; np.where is four
    times slower for an irregular mask.
    """
    bits = np.uint32
    for rows in blocks(out.shape):
        shape = out[rows].shape
        mask, mixed = scratch("select.mask", shape, bits), scratch("select", shape, bits)
        true, false = (np.broadcast_to(x.view(bits), out.shape)[rows] for x in (on_true, on_false))
        np.copyto(mask, np.broadcast_to(condition, out.shape)[rows])
        np.negative(mask, out=mask)  # all bits, or none
        np.bitwise_xor(true, false, out=mixed)
        np.bitwise_and(mixed, mask, out=mixed)
        np.bitwise_xor(mixed, false, out=out[rows].view(bits))


def transpose(values: Array, out: Array) -> None:
    """Transpose (P, N) to (N, P), bitwise, for any type; the arrays must not overlap.

    The values are first copied to rows of an odd number of cache lines: rows of a power of two of
    bytes share cache sets, which makes the plain copy up to five times slower.
    """
    rows, columns = values.shape
    unit = max(1, LINE // values.itemsize)
    pitch = (-(-columns // unit) | 1) * unit
    spread = scratch("transpose", (rows, pitch), values.dtype.type)[:, :columns]
    np.copyto(spread, values)
    np.copyto(out, spread.T)


def max8(values: Floats, out: Floats) -> None:
    """Write the eight largest of each partition, descending: (P, 8). NaN counts as largest."""
    largest = np.partition(values, values.shape[1] - 8, axis=1)[:, -8:]
    largest.sort(axis=1)
    np.add(largest[:, ::-1], np.float32(0), out=out)  # -0 becomes 0: their order depends on NumPy
