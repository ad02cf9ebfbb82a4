"""Reductions along axes, with an order that is independent of the memory layout.

Sums, differences, products and means are accumulated by `sums.fold`, in C order. With "exact" this
is in float64, rounded once to float32. Products are sequential. Sums are pairwise, as NumPy adds a
contiguous row: more than 128 numbers are split in two at the multiple of 8 at or below the middle;
8 to 128 are added in eight interleaved sums, joined as ((0 1) (2 3)) ((4 5) (6 7)), and the
remainder is added last; fewer than 8 are added sequentially. The other operators do not depend on
the order, except for the sign of zero, which is made positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from math import inf, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import BLOCK, blocks, scratch
from nkic.machine.operators import SummationOrder
from nkic.simulate.numerics.elementwise import ARITHMETIC, transpose

# ------------------------------------------------------------------------------------------------
# Sums of float32 in float64 by BLAS, for rows whose rounding to float32 does not depend on order.
# A sum of n numbers in float64, in any order, differs from the exact sum by at most n 2^-53 times
# the sum of magnitudes, to first order; in the defined order (`reduction.py`), which adds at most
# 16 numbers in one chain, by less than 40 2^-53 times. If the ends of an interval that exceeds
# both round to the same float32, then the sum in the defined order does too. The product of rows
# with ones takes half of the time of additions in the defined order, which the few other rows
# need.
#
# The sum of magnitudes of a row is at most the root of n times the sum of all squares, which
# callers know as a float32 that BLAS has added up: for at most `MAX_SIZE` numbers it is less than
# a tenth too small, apart from squares below the least float32.

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


# ------------------------------------------------------------------------------------------------
# Sequential sums in float32 by BLAS, which adds the numbers of many rows side by side.
# The product of rows with ones is each row's sum, in the order in which BLAS adds (`matmul.py`);
# the sum so far is the first number of the next slab. That takes a third of the time of adding up
# columns of the transposed rows. The sum starts with 0, so that a sum of zeros loses its sign, and
# the bits of a NaN depend on BLAS: the result is only used if all sums are finite and nonzero.

SLABS = (256, 128)  # numbers of a row that are added at once: the first that BLAS adds in order
MIN_CHAIN = 256  # minimum length of a row for which this is faster
ROWS, COLUMNS = 32, 16  # multiples for which BLAS adds in order


def sum_rows_in_turn(rows: Floats, out: Floats) -> bool:
    """Add up each row of (rows, elements) into `out`, (rows,); return whether this succeeded."""
    size = _slab() if rows.shape[1] >= MIN_CHAIN else 0
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
        np.matmul(rows[:, :size], _ones_of(size), out=sums)
        slab[:, 0] = sums[:, 0]
    for start in range(first, elements, size):
        numbers = rows[:, start : start + size]
        width = 1 + numbers.shape[1]
        slab[:count, 1:width] = numbers
        slab[:, width:] = 0
        np.matmul(slab, _ones_of(1 + size), out=sums)
        slab[:, 0] = sums[:, 0]
    np.copyto(out, sums[:count, 0])


@lru_cache(maxsize=4)
def _ones_of(length: int) -> Floats:
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


# ---- Sums in the orders of `machine.orders`, on arrays ------------------------------------------

Array = NDArray[Any]


def fold(combine: np.ufunc, rows: Array, out: Array, order: SummationOrder) -> None:
    """Combine the elements of each row of `rows`, (rows, elements), into `out`, (rows,).

    With "exact", the type is that of `rows`, which the caller has made float64, and the order is
    NumPy's along a contiguous row; `rows` must be in C order.
    """
    if order == "exact":
        combine.reduce(rows, axis=1, out=out)
    elif order == "float32":
        if combine is not np.add or not sum_rows_in_turn(rows, out):
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


# --------------------------------------------------------------------------------------------------

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
    if op == "add" and order == "exact" and squares < inf and may_sum(values, out.size):
        _certain(values, out, squares)
    elif op in _SUMS:
        _accumulated(_SUMS[op], values, out, keep, order)
    else:
        _OTHERS[op](values, out, tuple(range(keep, values.ndim)))


def reduce_bits(op: str, raw: Array, out: Array, keep: int = 1) -> None:
    ufunc = {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }[op]
    ufunc.reduce(raw, axis=tuple(range(keep, raw.ndim)), out=out)


def _certain(values: Floats, out: Floats, squares: float) -> None:
    """Add in whichever order is fastest where this does not matter."""
    rest = sum_rows(values, out, squares)
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


_add = partial(fold, np.add)


def _subtract(rows: Array, result: Array, order: SummationOrder) -> None:
    """Subtract all others from the first: except for "exact", by adding their negations."""
    if order == "exact":
        np.add.reduce(rows[:, 1:], axis=1, out=result)
        np.subtract(rows[:, 0], result, out=result)
        return
    np.multiply(rows[:, 1:], np.float32(-1), out=rows[:, 1:])
    fold(np.add, rows, result, order)


def _average(rows: Array, result: Array, order: SummationOrder) -> None:
    fold(np.add, rows, result, order)
    np.divide(result, rows.shape[1], out=result)


def _extreme(extreme: np.ufunc, values: Floats, out: Floats, axes: tuple[int, ...]) -> None:
    extreme.reduce(values, axis=axes, out=out)
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


_SUMS: dict[str, Total] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": partial(fold, np.multiply),
    "average": _average,
}
_OTHERS: dict[str, Callable[[Floats, Floats, tuple[int, ...]], None]] = {
    "maximum": partial(_extreme, np.maximum),
    "minimum": partial(_extreme, np.minimum),
    "abs_max": partial(_signed, np.maximum),
    "abs_min": partial(_signed, np.minimum),
    "logical_and": partial(_truth, np.bitwise_and),
    "logical_or": partial(_truth, np.bitwise_or),
    "logical_xor": partial(_truth, np.bitwise_xor),
}
OPERATORS = frozenset(_SUMS) | frozenset(_OTHERS)


# ---- Mean and variance of arrays (P, N) ---------------------------------------------------------


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


# ---- Runs of equal numbers, and indices of nonzero numbers --------------------------------------

Indices = NDArray[np.int64]


def sequence_bounds(ids: NDArray[Any]) -> Indices:
    """Return the first and one past the last index of the run of each of `ids` (N,): (2, N).

    An id of 0 has N and -1. NaN is a run of its own.
    """
    size = len(ids)
    index = np.arange(size)
    differs = ids[1:] != ids[:-1]
    first = np.maximum.accumulate(np.where(np.append(True, differs), index, 0))
    ends = np.where(np.append(differs, True), index + 1, size)
    last = np.minimum.accumulate(ends[::-1])[::-1]
    return np.stack((np.where(ids == 0, size, first), np.where(ids == 0, -1, last)))


def nonzero_with_count(values: NDArray[Any], offset: int, padding: int) -> Indices:
    """Return, for each row of (R, N), the indices of nonzero elements, padding, and their count."""
    rows, size = values.shape
    is_nonzero = values != 0
    indices = np.full((rows, size + 1), padding, np.int64)
    row, column = np.nonzero(is_nonzero)
    counts = is_nonzero.sum(axis=1)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    indices[row, slot] = column + offset
    indices[:, -1] = counts
    return indices


# ---- Recurrences along the free axis: every element needs the previous one ----------------------
# Rounding like the engine's requires a sequential loop; a step handles all partitions at once, in
# rows of a transposed copy.

# Sequential in NumPy: ufunc.accumulate(x)[i] is op(accumulate(x)[i - 1], x[i]), in float32.
_ACCUMULATE = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


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
    left, right, result = (scratch(f"scan.{i}", data0.shape[::-1], np.float32) for i in range(3))
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


# ---- Search for values and for the largest elements, in each row of float32 arrays --------------

Flags = NDArray[np.bool_]

NOWHERE = -1  # all bits set, as an index of any width


def match8(data: Floats, values: Floats, order: Iterable[int], taken: Flags) -> Indices:
    """Return the first occurrence in `data` (P, N) of each of `values` (P, 8), or NOWHERE: (P, 8).

    Values search in `order`, each past the occurrences found before. On return, `taken` (P, N)
    marks all occurrences found. NaN is never found.
    """
    rows = np.arange(len(data))
    indices = np.full(values.shape, NOWHERE, np.int64)
    taken[...] = False
    for i in order:
        equal = data == values[:, i : i + 1]
        equal &= ~taken
        first = equal.argmax(axis=1)
        occurs = equal[rows, first]
        indices[occurs, i] = first[occurs]
        taken[rows[occurs], first[occurs]] = True
    return indices


def largest(data: Floats, count: int) -> Indices:
    """Return the indices of the `count` largest of each row of (R, N), in ascending order.

    NaN is the largest. Among equal values the first are taken, in the order of their indices.
    """
    # among equal values, the first comes last
    ascending = np.argsort(data[:, ::-1], axis=1, kind="stable")
    kept = np.sort(data.shape[1] - 1 - ascending[:, -count:], axis=1)
    values = np.take_along_axis(data, kept, axis=1)
    return np.take_along_axis(kept, np.argsort(values, axis=1, kind="stable"), axis=1)
