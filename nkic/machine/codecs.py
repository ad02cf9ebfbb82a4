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

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import BFLOAT16, BOOL, FLOAT8_E8M0FNU, FLOAT32, TFLOAT32, DType
from nkic.machine.rounding import LOST, rounder
from nkic.machine.scratch import BLOCK, blocks, scratch

Array = NDArray[Any]
Floats = NDArray[np.float32]

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
