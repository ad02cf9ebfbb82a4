"""Reductions along axes, with an order that is independent of the memory layout.

Sums, differences, products and means are accumulated by `sums.fold`, in C order. With "exact" this
is in float64, rounded once to float32. Products are sequential. Sums are pairwise, as NumPy adds a
contiguous row: more than 128 numbers are split in two at the multiple of 8 at or below the middle;
8 to 128 are added in eight interleaved sums, joined as ((0 1) (2 3)) ((4 5) (6 7)), and the
remainder is added last; fewer than 8 are added sequentially. The other operators do not depend on
the order, except for the sign of zero, which is made positive.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import SummationOrder
from nkic.machine.scratch import BLOCK, blocks, scratch
from nkic.simulate.numerics import certain
from nkic.simulate.numerics.sums import fold

Array = NDArray[Any]
Floats = NDArray[np.float32]
Total = Callable[[Array, Array, SummationOrder], None]

_SINGLE_BLOCK = 1 << 20  # elements added at a time without a copy: many rows side by side are fast


def reduce(
    op: str,
    values: Floats,
    out: Floats,
    keep: int = 1,
    order: SummationOrder = "exact",
    squares: float = inf,
) -> None:
    """Reduce all axes of `values` except for the first `keep`, which `out` has.

    `squares` is the sum of the values' squares, in float32 and any order, if it is known.
    """
    if op == "add" and order == "exact" and squares < inf and certain.may_sum(values, out.size):
        _certain(values, out, keep, squares)
    elif op in _SUMS:
        _accumulated(_SUMS[op], values, out, keep, order)
    else:
        _OTHERS[op](values, out, tuple(range(keep, values.ndim)))


def reduce_bits(op: str, raw: Array, out: Array, keep: int = 1) -> None:
    """Reduce unsigned integers by a bitwise operator, as `reduce`."""
    ufunc = {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }[op]
    ufunc.reduce(raw, axis=tuple(range(keep, raw.ndim)), out=out)


def _certain(values: Floats, out: Floats, keep: int, squares: float) -> None:
    """Add in whichever order is fastest where this does not matter."""
    rest = certain.sum_rows(values, out, squares)
    if rest is not None:
        sums = np.empty(np.count_nonzero(rest), np.float32)
        _accumulated(_add, values[rest], sums, 1, "exact")
        out[rest] = sums


def _accumulated(
    total: Total, values: Floats, out: Floats, keep: int, order: SummationOrder
) -> None:
    kind = np.float64 if order == "exact" else np.float32
    only_reads = kind is np.float32 and total is _add and values.flags.c_contiguous
    for rows in blocks(values.shape, _SINGLE_BLOCK if only_reads else BLOCK, cut=keep):
        part = values[rows]
        rows_kept, reduced = prod(part.shape[:keep]), prod(part.shape[keep:])
        result = scratch("reduce.result", (rows_kept,), kind)
        if only_reads:
            total(part.reshape(rows_kept, reduced), result, order)
        else:
            copy = scratch("reduce", (rows_kept, reduced), kind)
            np.copyto(copy.reshape(part.shape), part)
            total(copy, result, order)
        np.copyto(out[rows], result.reshape(part.shape[:keep]), casting="same_kind")


def _add(rows: Array, result: Array, order: SummationOrder) -> None:
    fold(np.add, rows, result, order)


def _subtract(rows: Array, result: Array, order: SummationOrder) -> None:
    """Subtract all others from the first: except for "exact", by adding their negations."""
    if order == "exact":
        np.add.reduce(rows[:, 1:], axis=1, out=result)
        np.subtract(rows[:, 0], result, out=result)
        return
    np.multiply(rows[:, 1:], np.float32(-1), out=rows[:, 1:])
    fold(np.add, rows, result, order)


def _multiply(rows: Array, result: Array, order: SummationOrder) -> None:
    fold(np.multiply, rows, result, order)


def _average(rows: Array, result: Array, order: SummationOrder) -> None:
    fold(np.add, rows, result, order)
    np.divide(result, rows.shape[1], out=result)


def _maximum(values: Floats, out: Floats, axes: tuple[int, ...]) -> None:
    np.maximum.reduce(values, axis=axes, out=out)
    np.add(out, np.float32(0), out=out)


def _minimum(values: Floats, out: Floats, axes: tuple[int, ...]) -> None:
    np.minimum.reduce(values, axis=axes, out=out)
    np.add(out, np.float32(0), out=out)


def _signed(extreme: np.ufunc, values: Floats, out: Floats, axes: tuple[int, ...]) -> None:
    """Write the element of extreme magnitude; of +x and -x the last, as in the operator."""
    rows = values.reshape(*out.shape, -1)[..., ::-1]
    magnitude = np.abs(rows)
    best = extreme.reduce(magnitude, axis=-1, keepdims=True)
    position = np.argmax((magnitude == best) | np.isnan(magnitude), axis=-1, keepdims=True)
    np.copyto(out, np.take_along_axis(rows, position, axis=-1)[..., 0])


def _truth(ufunc: np.ufunc, values: Floats, out: Floats, axes: tuple[int, ...]) -> None:
    # On bytes, since NumPy reduces bool arrays slowly.
    np.copyto(out, ufunc.reduce((values != 0).view(np.uint8), axis=axes))


_SUMS = {"add": _add, "subtract": _subtract, "multiply": _multiply, "average": _average}
_OTHERS: dict[str, Callable[[Floats, Floats, tuple[int, ...]], None]] = {
    "maximum": _maximum,
    "minimum": _minimum,
    "abs_max": lambda v, o, a: _signed(np.maximum, v, o, a),
    "abs_min": lambda v, o, a: _signed(np.minimum, v, o, a),
    "logical_and": lambda v, o, a: _truth(np.bitwise_and, v, o, a),
    "logical_or": lambda v, o, a: _truth(np.bitwise_or, v, o, a),
    "logical_xor": lambda v, o, a: _truth(np.bitwise_xor, v, o, a),
}
OPERATORS = frozenset(_SUMS) | frozenset(_OTHERS)
