"""Conversion between the bytes of an element type and numbers.

All arithmetic is in float32. A *grid* is the set of float32 values that a type can represent;
`round_to_grid` rounds values to it without changing their representation, as the runner does after
every instruction. Values are rounded to nearest, ties to even, and subnormals are kept;
docs/fidelity.md says which of the rules are documented and which are assumed. Rounding a NaN to a
type narrower than float32 loses its sign and payload: it becomes the type's canonical quiet NaN.
Decoding keeps them, so that decoding followed by encoding without rounding (`on_grid`) preserves
the bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from math import inf, prod
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import BFLOAT16, BOOL, FLOAT8_E8M0FNU, FLOAT32, TFLOAT32, DType

# ---- Reusable scratch arrays for intermediate results -------------------------------------------
# Arithmetic on tiles must not allocate: a fresh 128 x 512 array costs more than adding two.

BLOCK = 1 << 16  # elements processed at a time, so that intermediates stay in the L2 cache


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.memory: dict[str, NDArray[np.uint8]] = {}
        self.views: dict[tuple[Any, ...], NDArray[Any]] = {}


_BUFFERS = _Buffers()


def scratch(slot: str, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an uninitialised array in C order; the next call for `slot` may return the same one.

    A slot belongs to one function of this package, which must not hold the array across calls of
    other functions that use the slot. Slots are per thread.
    """
    key = (slot, shape, dtype)
    view = _BUFFERS.views.get(key)
    return _make(key) if view is None else view


def _make(key: tuple[str, tuple[int, ...], type[np.generic]]) -> NDArray[Any]:
    slot, shape, dtype = key
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = _BUFFERS.memory.get(slot)
    if memory is None or memory.size < size:
        memory = _BUFFERS.memory[slot] = np.empty(size, np.uint8)
        # Views of the old memory would keep it alive.
        _BUFFERS.views = {k: v for k, v in _BUFFERS.views.items() if k[0] != slot}
    view = memory[:size].view(dtype).reshape(shape)
    _BUFFERS.views[key] = view
    return view


def blocks(
    shape: tuple[int, ...], block: int = BLOCK, cut: int | None = None
) -> Iterator[tuple[slice | EllipsisType, ...]]:
    """Yield indexes that cut an array of this shape into parts of at most `block` elements, in
    order.

    With `cut`, only the first `cut` axes are cut, and parts may be larger.
    """
    size, cut = prod(shape), len(shape) if cut is None else cut
    if size <= block or cut == 0:
        yield (...,)
        return
    inner = size // shape[0]
    if inner > block:
        for row in range(shape[0]):
            for inner_block in blocks(shape[1:], block, cut - 1):
                yield (slice(row, row + 1), *inner_block)
        return
    rows = block // inner
    for start in range(0, shape[0], rows):
        yield (slice(start, start + rows),)


# ---- Fast rounding of float32 values to the grid of an element type -----------------------------
# Types with float32's exponent range are rounded on the bits. Types with a smaller range use
# floating point addition: adding 1.5 * 2^k, with the right k per element, and subtracting it again
# leaves the nearest multiple of 2^(k-23), ties to even; the smallest k used yields the subnormals.
# NaN and overflow are tested first, because they are rare and fixing them up is slow.

Floats = NDArray[np.float32]
Rounder = Callable[[Floats, Floats], None]


class _Lost(threading.local):
    """Signals that a computation of this thread has lost numbers, set where it happens.

    Arithmetic sets `computed` when an operation on numbers gives infinity or NaN; NumPy tells, from
    the flags of the processor. Conversion to an element type sets `stored` when a number is beyond
    the type's range. Both are cheap: whoever asks then looks for the elements.
    """

    computed = False
    stored = False


LOST = _Lost()


def note_computed(kind: str, flags: int) -> None:
    """Set `LOST.computed`; the form is that of `numpy.errstate(call=…)`."""
    LOST.computed = True


_SMALL = 1 << 14  # elements that are all tested as fast as some

_ONE = np.array(1, np.uint32)
_EXPONENT = np.array(0x7F800000, np.uint32)
_SIGN = np.array(0x80000000, np.uint32)


@cache
def rounder(dtype: DType) -> Rounder:
    """Return the function (values, out) for this type; the shapes are equal, and `out` may be
    `values`.
    """
    if dtype is FLOAT32:
        return _copy
    if dtype is BOOL:
        return _round_bool
    if dtype is FLOAT8_E8M0FNU:
        return _round_power
    if dtype.is_integer:
        return _integer_rounder(dtype)
    if not dtype.is_float:
        raise ValueError(f"{dtype} is packed, and does not support arithmetic")
    return _wide_rounder(dtype) if dtype.exponent_bits == 8 else _narrow_rounder(dtype)


def _copy(values: Floats, out: Floats) -> None:
    np.copyto(out, values)


def _round_bool(values: Floats, out: Floats) -> None:
    np.not_equal(values, 0, out=out)


def _wide_rounder(dtype: DType) -> Rounder:
    """Round bfloat16 and tfloat32: add half of the last bit kept, less one if that bit is 0."""
    drop = 23 - dtype.mantissa_bits
    shift, half, mask = _uint32s(drop, (1 << (drop - 1)) - 1, -1 << drop & 0xFFFFFFFF)
    dropped = (1 << drop) - 1

    def round_wide(values: Floats, out: Floats) -> None:
        bits, result = values.view(np.uint32), out.view(np.uint32)
        highest = np.maximum.reduce(values, axis=None)
        nans = np.isnan(values) if highest != highest else None
        if nans is None and _has_none(bits, dropped):
            np.copyto(out, values)  # as copies of rounded values are
            return
        odd = scratch("round", values.shape, np.uint32)
        np.right_shift(bits, shift, out=odd)
        np.bitwise_and(odd, _ONE, out=odd)
        np.add(odd, half, out=odd)
        np.add(bits, odd, out=odd)
        np.bitwise_and(odd, mask, out=result)  # `out` may have gaps: write it only once
        if nans is not None:
            out[nans] = np.nan

    return round_wide


def _has_none(bits: NDArray[np.uint32], mask: int) -> bool:
    """Return whether no element has a bit of `mask`: where some do, the first row mostly tells."""
    if bits.size > _SMALL and np.bitwise_or.reduce(bits[0], axis=None) & mask:
        return False
    return not np.bitwise_or.reduce(bits, axis=None) & mask


def _narrow_rounder(dtype: DType) -> Rounder:
    """Round float16 and the 8-bit types."""
    min_exponent, max_exponent = _uint32s((128 - dtype.bias) << 23, 0x7F800000)
    (up,) = _uint32s((23 - dtype.mantissa_bits) << 23 | 0x400000)
    limit = _last_rounded_down(dtype)
    special = np.float32(inf if dtype.has_inf else np.nan if dtype.has_nan else dtype.highest)

    def round_narrow(values: Floats, out: Floats) -> None:
        lowest = np.minimum.reduce(values, axis=None)
        if -limit <= lowest and np.maximum.reduce(values, axis=None) <= limit:
            round_finite(values, out)
            return
        LOST.stored = True
        beyond = ~(np.abs(values) <= limit)  # also NaN
        lost = values[beyond]
        with np.errstate(over="ignore", invalid="ignore"):
            round_finite(values, out)
        replaced = np.copysign(special, lost) if dtype.has_inf or not dtype.has_nan else special
        out[beyond] = np.where(np.isnan(lost), np.nan if dtype.has_nan else 0, replaced)

    def round_finite(values: Floats, out: Floats) -> None:
        bits = values.view(np.uint32)
        magic = scratch("round", values.shape, np.uint32)
        sign = scratch("round.sign", values.shape, np.uint32)
        np.bitwise_and(bits, _SIGN, out=sign)
        np.bitwise_and(bits, _EXPONENT, out=magic)
        # NumPy's maximum is slow with a constant.
        np.clip(magic, min_exponent, max_exponent, out=magic)
        np.add(magic, up, out=magic)
        number = magic.view(np.float32)
        np.add(values, number, out=out)
        np.subtract(out, number, out=out)
        result = out.view(np.uint32)
        np.bitwise_or(result, sign, out=result)  # for values rounded to 0

    return round_narrow


def _last_rounded_down(dtype: DType) -> float:
    """Return the largest float32 that rounds to a finite value."""
    if dtype.ends_even:
        return dtype.halfway
    return float(np.nextafter(np.float32(dtype.halfway), np.float32(0)))


def _integer_rounder(dtype: DType) -> Rounder:
    lowest, highest, zero = (np.array(x, np.float32) for x in (dtype.lowest, dtype.highest, 0))

    def round_integer(values: Floats, out: Floats) -> None:
        np.rint(values, out=out)
        bottom, top = np.minimum.reduce(out, axis=None), np.maximum.reduce(out, axis=None)
        if not (bottom >= lowest and top <= highest):  # also for NaN
            LOST.stored = True
            np.clip(out, lowest, highest, out=out)
            out[np.isnan(out)] = 0
        np.add(out, zero, out=out)  # -0 becomes 0

    return round_integer


def _round_power(values: Floats, out: Floats) -> None:
    """Round to float8_e8m0fnu: the nearest power of two, ties up; NaN if out of range."""
    bits = values.view(np.uint32)
    power = bits + np.uint32(0x400000) & _EXPONENT
    smallest = np.uint32(0x400000)  # 2^-127, a subnormal float32
    power = np.where(bits < 0x600000, smallest, power)
    in_range = (values > 0) & (power < _EXPONENT)
    np.copyto(out, np.where(in_range, power.view(np.float32), np.float32(np.nan)))


def _uint32s(*values: int) -> tuple[Any, ...]:
    # Zero-dimensional arrays: NumPy is faster with them than with its scalars.
    return tuple(np.array(value, np.uint32) for value in values)


# --------------------------------------------------------------------------------------------------

Array = NDArray[Any]

_NATIVE = ("float16", "float32", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_SIXTEEN = np.array(16, np.uint32)


@cache
def storage(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's type for the bytes: the type itself, or an unsigned integer as wide."""
    if dtype is TFLOAT32:
        return np.dtype(np.float32)
    return np.dtype(dtype.name if dtype.name in _NATIVE else f"u{dtype.size}")


def decode(raw: Array, dtype: DType, out: Floats | None = None) -> Floats:
    """Return the numbers in `raw` (of `storage(dtype)`) as float32; 32-bit integers are rounded."""
    out = np.empty(raw.shape, np.float32) if out is None else out
    if dtype is BFLOAT16:
        bits = out.view(np.uint32)
        np.copyto(bits, raw)
        np.left_shift(bits, _SIXTEEN, out=bits)
    elif raw.dtype == np.float32 or not dtype.is_float:
        np.copyto(out, raw, casting="unsafe")
    else:
        np.take(values_of_codes(dtype), raw.view(f"u{dtype.size}"), out=out, mode="wrap")
    return out


def encode(
    values: Floats, dtype: DType, out: Array | None = None, *, on_grid: bool = False
) -> Array:
    """Return `values` as bytes of `dtype`, rounded first unless they are `on_grid` already."""
    out = np.empty(values.shape, storage(dtype)) if out is None else out
    if dtype is FLOAT32:
        np.copyto(out, values)
    elif dtype is BOOL:
        np.not_equal(values, 0, out=out, casting="unsafe")
    elif dtype.is_integer:
        _encode_integers(values, dtype, out)
    else:
        _encode_floats(values, dtype, out, on_grid)
    return out


def convert(raw: Array, source: DType, target: DType, out: Array | None = None) -> Array:
    """Convert through float32; between equal types, the bits are kept."""
    out = np.empty(raw.shape, storage(target)) if out is None else out
    if source is target:
        np.copyto(out, raw)
        return out
    return encode(decode(raw, source), target, out)


def round_to_grid(values: Floats, dtype: DType, out: Floats) -> Floats:
    """Round `values` as a store to `dtype` and a load would; `out` may be `values`."""
    round_block = rounder(dtype)
    if values.size <= BLOCK:
        round_block(values, out)
        return out
    for rows in blocks(values.shape):
        round_block(values[rows], out[rows])
    return out


def unpack(raw: Array, dtype: DType) -> Floats:
    """Unpack the elements of a packed type, shape (..., F) to (..., 4 F), lowest bits first."""
    element = _element(dtype)
    lanes = np.ascontiguousarray(raw)[..., None].view(np.uint8)
    if dtype.size == 2:  # two elements per byte
        lanes = np.stack((lanes & 15, lanes >> 4), axis=-1)
    return decode(lanes.reshape(*raw.shape[:-1], -1), element)


def pack(values: Floats, dtype: DType) -> Array:
    """Pack elements into a packed type, shape (..., 4 F) to (..., F); the inverse of `unpack`."""
    lanes = encode(values, _element(dtype))
    if dtype.size == 2:
        lanes = lanes[..., ::2] | lanes[..., 1::2] << 4
    return np.ascontiguousarray(lanes).view(storage(dtype))


@cache
def values_of_codes(dtype: DType) -> Floats:
    """Return the value of every bit pattern of a float type of at most 16 bits, in order.

    A NaN keeps its sign and its payload, in the highest bits of float32's, as bfloat16's does.
    """
    if dtype is FLOAT8_E8M0FNU:
        powers = np.ldexp(np.float32(1), np.arange(255) - dtype.bias)
        return np.append(powers, np.float32(np.nan))
    codes = np.arange(1 << (1 + dtype.exponent_bits + dtype.mantissa_bits))
    exponent = codes >> dtype.mantissa_bits & (1 << dtype.exponent_bits) - 1
    mantissa = codes & (1 << dtype.mantissa_bits) - 1
    leading = np.where(exponent > 0, 1 << dtype.mantissa_bits, 0)
    scale = np.maximum(exponent, 1) - dtype.bias - dtype.mantissa_bits
    values: Floats = np.ldexp((leading + mantissa).astype(np.float32), scale)
    nan = values > dtype.highest
    if dtype.has_inf:
        infinite = (exponent == exponent.max()) & (mantissa == 0)
        values[infinite] = np.inf
        nan &= ~infinite
    payload = mantissa[nan] << (23 - dtype.mantissa_bits) | 0x7F800000
    values.view(np.uint32)[nan] = payload
    negative = codes >> (dtype.exponent_bits + dtype.mantissa_bits) == 1
    values.view(np.uint32)[negative] |= 1 << 31
    return values


@cache
def _codes_of_values(dtype: DType) -> tuple[Array, NDArray[np.uint32]]:
    """Return the bit pattern of every value on the grid, indexed by the high bits of its float32.

    Also the number of low bits to drop for the index. Values off the grid map to the quiet NaN.
    """
    drop = 13 if dtype.mantissa_bits > 7 else 16
    values = values_of_codes(dtype)
    codes = np.zeros(1 << (32 - drop), f"u{dtype.size}")
    if dtype.has_nan:
        codes[:] = _quiet_nan(dtype)
    codes[values.view(np.uint32) >> drop] = np.arange(values.size)
    return codes, np.array(drop, np.uint32)


def _quiet_nan(dtype: DType) -> int:
    if dtype.has_inf:
        return (2 << dtype.exponent_bits) - 1 << (dtype.mantissa_bits - 1)
    return (1 << (dtype.exponent_bits + dtype.mantissa_bits)) - 1


def _encode_floats(values: Floats, dtype: DType, out: Array, on_grid: bool) -> None:
    if dtype is TFLOAT32:
        round_to_grid(values, dtype, out)
        return
    for rows in blocks(values.shape):
        source = values[rows]
        if not on_grid:
            source = round_to_grid(source, dtype, scratch("encode", source.shape, np.float32))
        if dtype is BFLOAT16:
            bits = scratch("encode.bits", source.shape, np.uint32)
            np.right_shift(source.view(np.uint32), _SIXTEEN, out=bits)
            np.copyto(out[rows], bits, casting="unsafe")
            continue
        codes, drop = _codes_of_values(dtype)
        index = scratch("encode.bits", source.shape, np.intp)
        np.right_shift(source.view(np.uint32), drop, out=index)
        np.take(codes, index, out=out[rows].view(codes.dtype), mode="wrap")


def _encode_integers(values: Floats, dtype: DType, out: Array) -> None:
    """Round to nearest even, saturate, and map NaN to 0.

    The limits of 32-bit types are not float32 values, and the highest 64-bit value is not a
    float64.
    """
    wide = np.float64 if dtype.size >= 4 else np.float32
    highest = np.nextafter(np.float64(dtype.highest), 0) if dtype.is_wide else dtype.highest
    for rows in blocks(values.shape):
        rounded = scratch("encode", values[rows].shape, wide)
        np.copyto(rounded, values[rows])
        np.rint(rounded, out=rounded)
        bottom, top = np.minimum.reduce(rounded, axis=None), np.maximum.reduce(rounded, axis=None)
        if bottom >= dtype.lowest and top <= highest:
            np.copyto(out[rows], rounded, casting="unsafe")
        else:  # also for NaN
            LOST.stored = True
            _saturate(rounded, dtype, highest, out[rows])


def _saturate(rounded: Array, dtype: DType, highest: float, out: Array) -> None:
    above = rounded >= dtype.highest if dtype.is_wide else None
    np.clip(rounded, dtype.lowest, highest, out=rounded)
    rounded[np.isnan(rounded)] = 0
    np.copyto(out, rounded, casting="unsafe")
    if above is not None:
        np.copyto(out, dtype.highest, where=above)


def _element(dtype: DType) -> DType:
    if dtype.element is None:
        raise ValueError(f"{dtype} is not packed")
    return dtype.element
