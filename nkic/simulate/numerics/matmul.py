"""The tensor engine's product.

Definition: every product of two float32 numbers is exact in float64. For each slab of 128 rows of
the operands, the products are added in float64, first row to last, from 0; the sums of further
slabs (double-row and MX modes) are added in order; the total is rounded once to float32. BLAS
computes exactly this, on any processor, if it is given enough rows and columns (other shapes use
kernels that add in another order): so operands are padded with zeros to multiples of 32 and 16.
`_way` tests once which call of this BLAS does, and otherwise a slow loop takes its place.

With the order "float32" everything is in float32, where each product is added before it is rounded
(a fused multiply-add), and the slabs' sums are rounded to float32 as well. BLAS does that too, on
processors that have such an instruction; with OpenBLAS's code for Haswell, which AMD's processors
run as well, away from the edges of the product only. With "pairwise", products are rounded to
float32 and added as a binary tree over the rows.

A product with an identity matrix, by which kernels transpose, is the transpose of the other factor:
every sum starts with 0 and adds zeros to one number, in any order. That takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from nkic.machine.codecs import scratch
from nkic.machine.dtypes import DType
from nkic.machine.operators import SummationOrder
from nkic.simulate.numerics.elementwise import transpose
from nkic.simulate.numerics.reduction import tree

# ---- The number of threads that NumPy's BLAS may use during a run -------------------------------
# Products of tiles are small: a second thread gains little on an idle machine, and on a busy one
# it waits for its core, which takes ten times as long. Results do not depend on it.


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses `count` threads.

    This is one setting for the whole process if BLAS has its own threads: among overlapping runs,
    the first one's setting is used, and is reverted when that run ends.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=count, user_api="blas")
    return limit


def in_use() -> int:
    """Return the number of threads that BLAS uses now; 0 if its library is not known."""
    return max((library.num_threads for library in _blas()), default=0)


@cache
def _blas() -> list[Any]:
    return [one for one in _libraries().lib_controllers if one.user_api == "blas"]


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded when the first run starts, which takes 2 ms to find."""
    return ThreadpoolController()


# --------------------------------------------------------------------------------------------------

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Factor = Floats | Doubles  # whose products are exact in float64
Array = NDArray[Any]
Product = Callable[[Array, Array, Array], None]

SLAB = 128  # rows of the systolic array
_ZERO = np.array(0, np.float32)
# OpenBLAS's code for Haswell multiplies blocks of 6 rows, of which every other one adds the first
# and last 8 columns in another order; from 320 columns on it divides them in two, as threads do.
_HEIGHT, _MARGIN, _PIECE = 12, 8, 256


def matmul(
    stationary: Factor,
    moving: Factor,
    out: Floats,
    accumulate: bool = False,
    order: SummationOrder = "exact",
) -> None:
    """Compute out[M, N] = stationary[K, M].T @ moving[K, N]; with `accumulate`, out += in float32.

    `out` must not share memory with the factors.
    """
    if order != "pairwise" and by_identity(stationary, moving, out, accumulate):
        return
    (rows, columns), size = stationary.shape, moving.shape[1]
    padded = (-(-columns // 32) * 32, -(-size // 16) * 16)
    kind, product = _PRODUCTS[order]
    fits_out = kind is np.float32 and rows <= SLAB and not accumulate and out.shape == padded
    is_direct = fits_out and _has_contiguous_rows(out)
    total = out if is_direct else scratch("matmul.total", padded, kind)
    for start in range(0, rows, SLAB):
        slab = slice(start, start + SLAB)
        left = _padded("matmul.left", stationary[slab], padded[0], kind)
        right = moving[slab]  # in place if BLAS can read it; `left` is never the same array
        if right.dtype != kind or size != padded[1] or not _has_contiguous_rows(right):
            right = _padded("matmul.right", right, padded[1], kind)
        if start == 0:
            product(left, right, total)
            continue
        slab_total = scratch("matmul.more", padded, kind)
        product(left, right, slab_total)
        np.add(total, slab_total, out=total)
    if not is_direct:
        _store(total[:columns, :size], out, accumulate)


def by_identity(stationary: Factor, moving: Factor, out: Floats, accumulate: bool) -> bool:
    """Compute `matmul` in any sequential order if `moving` is an identity matrix and the other
    factor is finite; return whether this is so.
    """
    return _is_identity(moving) and _transposed(stationary, out, accumulate)


def _is_identity(values: Factor) -> bool:
    rows, columns = values.shape
    if rows != columns or values[0, 0] != 1 or values[-1, -1] != 1:
        return False
    return bool((values == _identity(rows)).all())


@lru_cache(maxsize=4)
def _identity(size: int) -> Floats:
    return np.eye(size, dtype=np.float32)


def _transposed(values: Factor, out: Floats, accumulate: bool) -> bool:
    """Write the transpose of `values` plus zero: -0 becomes 0. Return whether all are finite, as
    they must be.
    """
    rounded = scratch("matmul.rounded", values.shape[::-1], np.float32)
    transpose(values, rounded)
    if not _is_finite(rounded):
        return False
    if accumulate:
        np.add(rounded, _ZERO, out=rounded)
        np.add(out, rounded, out=out)
    else:
        np.add(rounded, _ZERO, out=out)
    return True


def _is_finite(values: Floats) -> bool:
    """Return whether all values, in C order, are finite: so they are if their squares' sum is."""
    flat = values.reshape(-1)
    return bool(np.isfinite(np.dot(flat, flat)) or np.isfinite(flat).all())


def _store(total: Array, out: Floats, accumulate: bool) -> None:
    """Round to float32, and then add to `out` if `accumulate`."""
    if accumulate:
        np.add(out, total, out=out, dtype=np.float32, casting="same_kind")
    else:
        np.copyto(out, total, casting="same_kind")


def _has_contiguous_rows(values: Array) -> bool:
    """Return whether rows are contiguous: BLAS accepts any distance between rows."""
    step, unit = values.strides
    return unit == values.itemsize and step >= values.shape[1] * unit and step % unit == 0


def _padded(slot: str, operand: Factor, columns: int, kind: type[np.generic]) -> Array:
    rows, used = operand.shape
    wide = scratch(slot, (rows, columns), kind)
    if used == columns:
        np.copyto(wide, operand, casting="same_kind")
        return wide
    np.copyto(wide[:, :used], operand, casting="same_kind")
    wide[:, used:] = 0
    return wide


def _in_order(left: Array, right: Array, out: Array) -> None:
    threads, now = -1, in_use()
    while threads != now:  # or else a run that overlaps this one has changed it
        threads = now
        _way(left.dtype, threads)(left, right, out)
        now = in_use()


def _blas_product(left: Array, right: Array, out: Array) -> None:
    np.matmul(left.T, right, out=out)


def _inside(left: Array, right: Array, out: Array) -> None:
    """Compute the product in pieces with a margin of zeros on both sides."""
    rows, columns = left.shape
    tall = _padded("matmul.tall", left, -(-columns // _HEIGHT) * _HEIGHT, left.dtype.type)
    for start in range(0, right.shape[1], _PIECE):
        piece = right[:, start : start + _PIECE]
        inside = slice(_MARGIN, _MARGIN + piece.shape[1])
        wide = scratch("matmul.wide", (rows, inside.stop + _MARGIN), left.dtype.type)
        wide[:, : inside.start] = wide[:, inside.stop :] = 0
        wide[:, inside] = piece
        total = scratch("matmul.inside", (tall.shape[1], wide.shape[1]), left.dtype.type)
        np.matmul(tall.T, wide, out=total)
        out[:, start : start + _PIECE] = total[:columns, inside]


def _loop(left: Doubles, right: Doubles, out: Doubles) -> None:
    out[...] = 0
    term = np.empty_like(out)
    for column, row in zip(left, right, strict=True):
        np.multiply(column[:, None], row, out=term)
        np.add(out, term, out=out)


def _fused_loop(left: Floats, right: Floats, out: Floats) -> None:
    """Add the exact product to the sum so far, with one rounding, row by row."""
    out[...] = 0
    for column, row in zip(left, right, strict=True):
        term = np.multiply(column[:, None], row, dtype=np.float64)
        np.copyto(out, _sum_to_odd(term, out), casting="same_kind")


def _sum_to_odd(one: Doubles, other: Floats) -> Doubles:
    """Return one + other such that rounding it to float32 has no double-rounding error.

    If float64 cannot hold the sum, this is the neighbour whose last bit is 1 ("round to odd").
    """
    total: Doubles = one + other
    addend = total - one
    error = (one - (total - addend)) + (other - addend)
    inexact = (error != 0) & (total.view(np.int64) & 1 == 0) & np.isfinite(error)
    towards = np.copysign(np.inf, error[inexact])
    total[inexact] = np.nextafter(total[inexact], towards)
    return total


def _tree(left: Floats, right: Floats, out: Floats) -> None:
    terms = [column[:, None] * row for column, row in zip(left, right, strict=True)]
    np.copyto(out, tree(np.add, terms))


_PRODUCTS: dict[SummationOrder, tuple[type[np.generic], Product]] = {
    "exact": (np.float64, _in_order),
    "float32": (np.float32, _in_order),
    "pairwise": (np.float32, _tree),
}

# The ways to compute a product, fastest first; the last one is the definition.
_WAYS: dict[np.dtype[Any], tuple[Product, ...]] = {
    np.dtype(np.float64): (_blas_product, _loop),
    np.dtype(np.float32): (_blas_product, _inside, _fused_loop),
}


@lru_cache(maxsize=16)
def _way(kind: np.dtype[Any], threads: int) -> Product:
    """Return the first way that adds products in order with this number of BLAS threads, which must
    be set. It is tested on sums that show the order.

    In float32, each product is also added before it is rounded.
    """
    *fast, definition = _WAYS[kind]
    return next((way for way in fast if _agrees(way, definition, kind)), definition)


# BLAS computes blocks of at least four rows and columns, so that every third one shows each block.
_STRIDE = 3
_PROBES = ((37, 64, 48), (128, 128, 16), (128, 32, 16), (128, 96, 80), (128, 128, 512))


def _agrees(way: Product, definition: Product, kind: np.dtype[Any]) -> bool:
    for rows, columns, size in _PROBES:
        left, right = _probe(rows, columns, 1, kind), _probe(rows, size, 2, kind)
        found = np.empty((columns, size), kind)
        way(left, right, found)
        some = found[::_STRIDE, ::_STRIDE]
        wanted = np.empty(some.shape, kind)
        definition(left[:, ::_STRIDE], right[:, ::_STRIDE], wanted)
        if not np.array_equal(some, wanted):
            return False
    return True


def _probe(rows: int, columns: int, seed: int, kind: np.dtype[Any]) -> Array:
    """Return numbers of very different sizes: every order of addition rounds differently."""
    draw = np.random.Generator(np.random.PCG64(seed))
    exponent = draw.integers(-40, 40, (rows, columns))
    numbers = np.ldexp(draw.standard_normal((rows, columns), dtype=np.float32), exponent)
    return np.asarray(numbers, kind)


# ------------------------------------------------------------------------------------------------
# Groups of 32 elements with one scale, a power of two (OCP MX), in the hardware's layout.
# A group is 8 partitions of 4 consecutive elements. A scale is a code of float8_e8m0fnu: 2^(code -
# 127), and 255 is NaN.

Codes = NDArray[np.uint8]

PARTITIONS, LANES = 8, 4  # of a group
BIAS, NAN = 127, 255  # of a scale's code


def quantized(values: Floats, element: DType, headroom: bool = True) -> tuple[Floats, Codes]:
    """Return `values` (P, 4 F) divided by their scales, and the scales' codes (P / 8, F).

    The elements are not yet rounded to `element`. A scale is 2^(floor(log2 of the greatest
    magnitude) - largest exponent + 1), so that no element rounds to more than its type holds; it is
    at least 2^-127, also for a group of zeros. A group with NaN or an infinity has NaN as its scale
    and its elements (assumed). Without `headroom`, the scale is half of that, and elements saturate
    at the type's limit.
    """
    rows, columns = values.shape[0] // PARTITIONS, values.shape[1] // LANES
    groups = values.reshape(rows, PARTITIONS, columns, LANES)
    greatest = np.abs(groups).max(axis=(1, 3))
    finite = np.isfinite(greatest)
    largest = int(np.frexp(element.highest)[1]) - 1  # 8 for float8_e4m3fn, 15 for float8_e5m2
    shift = largest + (not headroom)
    _, above = np.frexp(np.where(finite, greatest, 0))  # floor(log2) + 1
    exponent = np.where(greatest > 0, above - shift, -BIAS)
    exponent = np.maximum(exponent, -BIAS)
    scaled = np.ldexp(groups, -exponent[:, None, :, None])
    scaled = np.clip(scaled, -element.highest, element.highest)
    scaled = np.where(finite[:, None, :, None], scaled, np.float32(np.nan))
    codes = np.where(finite, exponent + BIAS, NAN).astype(np.uint8)
    return scaled.reshape(values.shape), codes


def dequantized(elements: Floats, codes: Codes) -> Doubles:
    """Return `elements` (P, 4 F) times their scales (P / 8, F), exact in float64."""
    rows, columns = codes.shape
    groups = elements.astype(np.float64).reshape(rows, PARTITIONS, columns, LANES)
    scales = np.ldexp(1.0, codes.astype(np.int32) - BIAS)
    scales[codes == NAN] = np.nan
    products: Doubles = groups * scales[:, None, :, None]
    return products.reshape(elements.shape)
