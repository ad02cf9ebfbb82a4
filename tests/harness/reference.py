"""The documented conversions, in NumPy's float64 and Python's integers, without code of nkic."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES

Array = NDArray[Any]
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "uint8": 8, "uint16": 16, "uint32": 32}


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return NumPy's type of the elements by name; words of bits for the packed types."""
    names = {"tfloat32": "float32", "bool": "uint8"}
    if DTYPES[dtype].kind == "packed":
        return np.dtype(f"u{DTYPES[dtype].size}")
    return np.dtype(getattr(ml_dtypes, dtype, names.get(dtype, dtype)))


def stored(values: Array, dtype: str) -> Array:
    """Return numbers as elements of `dtype`.

    Numbers are rounded to float32 and then to the type; to integers they are rounded to nearest
    even and saturate, and NaN becomes 0.
    """
    with np.errstate(all="ignore"):
        wide: Array = np.asarray(values).astype(np.float32)
        if dtype == "bool":
            flags: Array = wide != 0
            return flags.astype(np.uint8)
        if dtype == "tfloat32":
            return _short(wide)
        if dtype == "float8_e8m0fnu":
            return _power(wide.astype(np.float64))
        if dtype not in INTEGER_BITS:
            return wide.astype(numpy_type(dtype))
        whole = np.nan_to_num(np.rint(wide.astype(np.float64)), nan=0.0)
    bits, signed = INTEGER_BITS[dtype], not dtype.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    held: Array = np.clip(whole, low, high).astype(np.int64).astype(dtype)
    return held


def _short(wide: Array) -> Array:
    """Round float32 to 10 bits of mantissa: to the nearest multiple of the last bit."""
    _, exponent = np.frexp(wide.astype(np.float64))
    last = np.maximum(exponent, -125) - 11  # the smallest normal number is 2^-126
    short: Array = np.ldexp(np.rint(np.ldexp(wide.astype(np.float64), -last)), last)
    return short.astype(np.float32)


def _power(wide: Array) -> Array:
    """Return the nearest power of two from 2^-127 to 2^127, ties up. (ml_dtypes differs below
    2^-126.)
    """
    fraction, exponent = np.frexp(wide)
    power = np.maximum(exponent - (fraction < 0.75), -127)
    good = (wide > 0) & (power <= 127) & np.isfinite(wide)
    return np.where(good, np.ldexp(1.0, power), np.nan).astype(numpy_type("float8_e8m0fnu"))


def loaded(elements: Array) -> Array:
    """Return elements as the engines read them, in float32: 32-bit integers are rounded."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        return elements.astype(np.float32)


def single(values: Array) -> Array:
    """Round to float32, in float64."""
    with np.errstate(all="ignore"):
        return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


def same(found: Array, expected: Array) -> None:
    """Assert that arrays are bitwise equal, except for the sign and payload of NaN and the sign
    of zero.
    """
    assert found.dtype == expected.dtype and found.size == expected.size
    a, b = found.ravel(), expected.ravel()
    if found.dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):  # signalling NaN
            a, b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(a, b)
