"""Fast rounding of float32 values to the grid of an element type.

Types with float32's exponent range are rounded on the bits. Types with a smaller range use floating
point addition: adding 1.5 * 2^k, with the right k per element, and subtracting it again leaves the
nearest multiple of 2^(k-23), ties to even; the smallest k used yields the subnormals. NaN and
overflow are tested first, because they are rare and fixing them up is slow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import BOOL, FLOAT8_E8M0FNU, FLOAT32, DType
from nkic.machine.scratch import scratch

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
