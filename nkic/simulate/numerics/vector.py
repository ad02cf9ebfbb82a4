"""Instructions of the vector engine that are more than an operator, on arrays (P, N)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import blocks, scratch

Array = NDArray[Any]
Floats = NDArray[np.float32]


def select(condition: NDArray[np.bool_], on_true: Array, on_false: Array, out: Array) -> None:
    """Where the condition holds the one, elsewhere the other, bit for bit (any 32-bit type).

    Both broadcast to `out`. A blend of bits takes the same time for every mask; np.where is
    four times slower on one without a pattern.
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
    """(P, N) to (N, P), bit for bit, of any type; the arrays must not overlap.

    Sixteen partitions at a time: rows of a power of two of bytes share cache sets, which makes
    the plain copy five times slower.
    """
    for start in range(0, values.shape[0], 16):
        np.copyto(out[:, start : start + 16], values[start : start + 16].T)


def bn_stats(values: Floats, out: Floats) -> None:
    """(count, mean, variance times count) of the even, then of the odd elements: (P, 6).

    In float64, rounded once. With one element there are no odd ones: count, mean and variance
    are 0.
    """
    for first in (0, 1):
        part = _doubles(values[:, first::2])
        count = part.shape[1]
        mean = part.sum(axis=1, keepdims=True) / max(count, 1)
        out[:, 3 * first] = count
        out[:, 3 * first + 1] = mean[:, 0]
        out[:, 3 * first + 2] = np.square(part - mean).sum(axis=1)


def bn_aggr(statistics: Floats, out: Floats) -> None:
    """(mean, variance): (P, 2), from any number of triples of `bn_stats`: (P, 3 n).

    In float64, rounded once; with a total count of 0 both are 0.
    """
    count, mean, spread = (_doubles(statistics[:, i::3]) for i in range(3))
    total = count.sum(axis=1)
    divisor = np.where(total == 0, 1, total)
    centre = (count * mean).sum(axis=1) / divisor
    between = count * np.square(mean - centre[:, None])
    out[:, 0] = centre
    out[:, 1] = (spread + between).sum(axis=1) / divisor


def _doubles(values: Floats) -> NDArray[np.float64]:
    return np.array(values, np.float64, order="C")  # the order of sums depends on the layout


def max8(values: Floats, out: Floats) -> None:
    """The eight largest of each partition, descending: (P, 8). NaN counts as largest."""
    largest = np.partition(values, values.shape[1] - 8, axis=1)[:, -8:]
    largest.sort(axis=1)
    np.add(largest[:, ::-1], np.float32(0), out=out)  # -0 is 0: their order is NumPy's
