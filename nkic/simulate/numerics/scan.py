"""Recurrences along the free axis: every element needs the previous one.

Rounding like the engine's requires a sequential loop; a step handles all partitions at once, in
rows of a transposed copy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import scratch
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.numerics.vector import transpose

Floats = NDArray[np.float32]

# Sequential in NumPy: ufunc.accumulate(x)[i] is op(accumulate(x)[i - 1], x[i]), in float32.
_ACCUMULATE = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def tensor_tensor_scan(
    data0: Floats,
    data1: Floats,
    initial: Floats,
    out: Floats,
    op0: str,
    op1: str,
    reverse0: bool = False,
    reverse1: bool = False,
) -> None:
    """Compute out[i] = op1(op0(data0[i], out[i - 1]), data1[i]) from `initial`; (P, N) each.

    `initial` is (P, 1) or a constant. The carry is a float32. `reverse` swaps the operands.
    """
    first, second = ARITHMETIC[op0], ARITHMETIC[op1]
    left, right, result = (_transposed(f"scan.{i}", data0.shape) for i in range(3))
    transpose(data0, left)
    transpose(data1, right)
    carry = scratch("scan.carry", (data0.shape[0],), np.float32)
    np.copyto(carry, np.ravel(initial))
    for a, b, r in zip(left, right, result, strict=True):
        first(carry if reverse0 else a, a if reverse0 else carry, r)
        second(b if reverse1 else r, r if reverse1 else b, r)
        carry = r
    transpose(result, out)


def cumulative(values: Floats, initial: Floats, out: Floats, op: str) -> None:
    """Compute out[i] = op(values[i], out[i - 1]) from `initial`, which is (P, 1) or a constant."""
    if op not in _ACCUMULATE:
        zero = np.zeros((), np.float32)
        ignored = np.broadcast_to(zero, values.shape)
        tensor_tensor_scan(values, ignored, initial, out, op, "bypass")
        return
    partitions, size = values.shape
    rows = scratch("scan.0", (partitions, size + 1), np.float32)
    rows[:, :1] = initial
    rows[:, 1:] = values
    totals = scratch("scan.1", rows.shape, np.float32)
    _ACCUMULATE[op].accumulate(rows, axis=1, out=totals)
    if op in ("maximum", "minimum"):
        np.add(totals, np.float32(0), out=totals)  # -0 becomes 0, as in the operators
    np.copyto(out, totals[:, 1:])


def _transposed(slot: str, shape: tuple[int, ...]) -> Floats:
    return scratch(slot, shape[::-1], np.float32)
