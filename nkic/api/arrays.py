"""Arrays of the caller's and element types of NKI.

NumPy arrays are known, those of ml_dtypes' element types included. Other libraries join with an
adapter: a function that gives the NumPy array of a value that it knows, and None for others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.api.errors import refuse
from nkic.arrays.offers import Offer, natural
from nkic.base.suggest import did_you_mean
from nkic.machine import dtypes
from nkic.machine.codecs import storage
from nkic.machine.dtypes import BOOL, DType
from nkic.specialise.request import TensorType

Array = NDArray[Any]
Adapter = Callable[[Any], Array | None]


def _numpy(value: Any) -> Array | None:
    return value if isinstance(value, np.ndarray) else None


adapters: list[Adapter] = [_numpy]
"""How values become arrays, in the order of asking. Append to it."""

_CASTS = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def array_of(value: Any) -> Array | None:
    """The array that a value is or wraps; None for what is not an array."""
    found = (adapter(value) for adapter in adapters)
    return next((array for array in found if array is not None), None)


def dtype_of(element: np.dtype[Any]) -> DType | None:
    """NKI's element type for one of NumPy's or ml_dtypes'; None if there is none."""
    return dtypes.DTYPES.get(element.name)


def type_of(array: Array, name: str) -> TensorType:
    """The type of a tensor argument. Refuses element types that no engine has."""
    dtype = dtype_of(array.dtype)
    if dtype is None:
        near = _CASTS.get(array.dtype.name)
        cast = getattr(array, "cast", "`.astype(np.{})`")
        advice = f"pass it as {near}: {cast.format(near)}" if near else ""
        advice = advice or did_you_mean(array.dtype.name, dtypes.DTYPES)
        refuse(f"argument `{name}` is an array of {array.dtype}, which is not an NKI dtype", advice)
    _refuse_mask(array)
    if not array.shape:
        refuse(
            f"argument `{name}` is an array without dimensions",
            "pass a number, `array.item()`, or an array of shape (1,)",
        )
    if 0 in array.shape:
        refuse(f"argument `{name}` has the shape {array.shape}, which has no elements")
    return TensorType(dtype, tuple(array.shape), "the call")


def offer(array: Array) -> Offer:
    """An array as what an input may be made of."""
    dtype = dtype_of(array.dtype)
    if dtype is None:  # refused with the signature, in the words of the run
        return _plain(array)
    _refuse_mask(array)
    # In the order of bytes of this machine, which is little-endian, as NKI's is.
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    stored = native if dtype is BOOL else native.view(storage(dtype))
    return Offer("the call", natural(dtype), array.shape, dtype, lambda: stored)


def _refuse_mask(array: Array) -> None:
    if isinstance(array, np.ma.MaskedArray):
        refuse("a masked array has no value where its mask hides one", "pass array.filled(value)")


def _plain(array: Array) -> Offer:
    from nkic.arrays.npy import Element

    element = Element(array.dtype.kind, array.dtype.itemsize)
    return Offer("the call", element, array.shape, None, lambda: array)


def presented(output: Array, dtype: DType) -> Array:
    """An output in its own element type: NumPy's, ml_dtypes' where that is there, or the bytes
    as unsigned integers.
    """
    array = np.ascontiguousarray(output).reshape(output.shape)
    return array.view(numpy_type(dtype))


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The element type that callers get for `dtype`."""
    if dtype is BOOL:
        return np.dtype(np.bool_)
    if not dtype.is_float or storage(dtype).kind == "f":
        return _registered(dtype) if dtype.lanes > 1 else storage(dtype)
    try:
        found: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), dtype.name))
    except (ImportError, AttributeError):
        return storage(dtype)
    return found


def _registered(dtype: DType) -> np.dtype[Any]:
    """A packed type under its name, where some library has made it known to NumPy."""
    try:
        found = np.dtype(dtype.name)
    except TypeError:
        return storage(dtype)
    return found if found.itemsize == dtype.size else storage(dtype)
