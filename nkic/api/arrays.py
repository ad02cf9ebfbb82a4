"""The caller's arrays, and their NKI element types.

NumPy arrays are supported, including those of ml_dtypes' element types. Other libraries join with
an adapter: a function that returns the NumPy array of a value it recognises, and None for any other
value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.api.errors import refuse
from nkic.artifact.archive import CALL
from nkic.artifact.arrays import Element, Offer, natural
from nkic.base.diagnostics import did_you_mean
from nkic.machine import dtypes
from nkic.machine.codecs import storage
from nkic.machine.dtypes import BOOL, DType
from nkic.specialise.request import TensorType

Array = NDArray[Any]
Adapter = Callable[[Any], Array | None]


adapters: list[Adapter] = [lambda value: value if isinstance(value, np.ndarray) else None]
"""The adapters, tried in order. Append to this list to support another library."""

_CASTS = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def array_of(value: Any) -> Array | None:
    arrays = (adapter(value) for adapter in adapters)
    return next((array for array in arrays if array is not None), None)


class Names:
    """The names under which the arrays of one call are inputs.

    An array that occurs twice is one input, and so is an array that another one shares: a buffer
    that is passed twice is one buffer for the kernel, too.
    """

    def __init__(self) -> None:
        self._by_value: dict[int, str] = {}
        self._by_buffer: dict[Any, str] = {}
        self._alive: list[Any] = []

    def name(self, value: Any, array: Array, path: str) -> str:
        """Return the input's name, which is `path` the first time."""
        buffer = (array.__array_interface__["data"], array.shape, array.strides, array.dtype.str)
        known = self._by_value.get(id(value)) or self._by_buffer.get(buffer)
        self._alive.append((value, array))
        self._by_buffer.setdefault(buffer, known or path)
        return self._by_value.setdefault(id(value), known or path)

    def of(self, value: Any) -> str | None:
        return self._by_value.get(id(value))


def dtype_of(element: np.dtype[Any]) -> DType | None:
    """Return the NKI element type of a NumPy or ml_dtypes type; None if there is none."""
    return dtypes.DTYPES.get(element.name)


def type_of(array: Array, name: str) -> TensorType:
    """Return the type of a tensor argument. Raises `UsageFailed` for element types that no engine
    supports.
    """
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
    return TensorType(dtype, tuple(array.shape), CALL)


def offer(array: Array) -> Offer:
    dtype = dtype_of(array.dtype)
    if dtype is None:  # reported when the signature is bound, in the words of the run
        element = Element(array.dtype.kind, array.dtype.itemsize)
        return Offer(CALL, element, array.shape, None, lambda: array)
    _refuse_mask(array)
    # In the byte order of this machine, which is little-endian, like NKI's.
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    stored = native if dtype is BOOL else native.view(storage(dtype))
    return Offer(CALL, natural(dtype), array.shape, dtype, lambda: stored)


def _refuse_mask(array: Array) -> None:
    if isinstance(array, np.ma.MaskedArray):
        refuse(
            "masked arrays are not supported: masked elements have no value",
            "pass array.filled(value)",
        )


def presented(output: Array, dtype: DType) -> Array:
    """Return an output in its own element type: NumPy's, ml_dtypes' if it is installed, or else the
    stored bytes as unsigned integers.
    """
    return np.ascontiguousarray(output).reshape(output.shape).view(numpy_type(dtype))


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy type in which callers receive `dtype`."""
    if dtype is BOOL:
        return np.dtype(np.bool_)
    if not dtype.is_float or storage(dtype).kind == "f":
        return _registered(dtype) if dtype.lanes > 1 else storage(dtype)
    try:
        element: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), dtype.name))
    except ImportError:
        _warn_of_bits(dtype.name, storage(dtype).name)
        return storage(dtype)
    except AttributeError:
        return storage(dtype)
    return element


@cache
def _warn_of_bits(dtype: str, stored: str) -> None:
    text = f"arrays of {dtype} are returned as {stored}, their bits: NumPy has no such type"
    warnings.warn(f"{text} without ml_dtypes (pip install ml_dtypes)", stacklevel=2)


def _registered(dtype: DType) -> np.dtype[Any]:
    """Return a packed type by its name if some library has registered it with NumPy."""
    try:
        registered = np.dtype(dtype.name)
    except TypeError:
        return storage(dtype)
    return registered if registered.itemsize == dtype.size else storage(dtype)
