"""Conversion between numbers and a type's bytes, for users' data.

Numbers are float64; those of 64-bit types are of the longest float type. `nkic.machine.codecs`
works in float32, as the machine does; here an int32 keeps all its digits and a float64 is rounded
as late as possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine import codecs
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DType

Numbers = NDArray[np.floating[Any]]
EXACT = np.longdouble  # for nl.int64; no better than float64 on some platforms


def numbers(stored: NDArray[Any], dtype: DType) -> Numbers:
    """Return the values of stored elements. Packed ones spread over the last dimension."""
    if dtype.lanes > 1:
        return codecs.unpack(stored, dtype).astype(np.float64)
    if dtype.is_float:
        with np.errstate(invalid="ignore"):  # signalling NaN
            return codecs.decode(stored, dtype).astype(np.float64)
    return stored.astype(EXACT if dtype.is_wide else np.float64)


def stored(values: Numbers, dtype: DType) -> NDArray[Any]:
    """Return values in the storage type of `dtype`, rounded to nearest even.

    Integers saturate, and NaN becomes 0. Floats are first rounded to float32.
    """
    with np.errstate(all="ignore"):
        if dtype.lanes > 1:
            return codecs.pack(values.astype(np.float32), dtype)
        if not dtype.is_integer:
            return codecs.encode(values.astype(np.float32), dtype)
        values = values.astype(EXACT) if dtype.is_wide else values
        whole = np.nan_to_num(np.rint(values), nan=0.0)
        integers: NDArray[Any] = np.clip(whole, dtype.lowest, dtype.highest).astype(storage(dtype))
        if dtype.is_wide:  # as a float, the highest is one more
            integers[whole >= dtype.highest] = dtype.highest
        return integers


def unpacked_shape(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    """Return the shape of the numbers in an array of `shape`."""
    if dtype.lanes == 1:
        return shape
    return (*shape[:-1], shape[-1] * dtype.lanes) if shape else (dtype.lanes,)


def rounding_error(values: Numbers, result: Numbers) -> float:
    """Return the largest difference that storing `values` made; infinite if one was lost."""
    with np.errstate(invalid="ignore"):
        same = (values == result) | (np.isnan(values) & np.isnan(result))
        errors = np.where(same, 0.0, np.abs(values - result))
    errors[np.isnan(errors)] = np.inf
    return float(errors.max(initial=0.0))
