"""The data of constants: elements of a shape and type, that become tensors in HBM.

Kernels compute with NumPy's own arrays; `nl.shared_constant` copies them into such data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.texts import brief
from nkic.machine import dtypes
from nkic.machine.dtypes import DType

Sizes = tuple[int, ...]

_FORMATS = {
    **{"float32": "f", "float16": "e", "bool": "?"},
    **{"int8": "b", "int16": "h", "int32": "i", "uint8": "B", "uint16": "H", "uint32": "I"},
    "bfloat16": "H",  # the upper half of a float32
}


@dataclass(frozen=True)
class ConstantArray:
    """Elements in row-major order, little-endian."""

    dtype: DType
    shape: Sizes
    data: bytes

    def astype(self, dtype: DType) -> ConstantArray:
        """Return the elements converted to another type."""
        code = _FORMATS[self.dtype.name]
        numbers: Iterator[Any] = (number for (number,) in struct.iter_unpack(f"<{code}", self.data))
        if self.dtype is dtypes.BFLOAT16:
            numbers = map(_widened, numbers)
        return _packed(numbers, self.shape, _kind(dtype))


def is_array(value: Any) -> bool:
    """Return whether the value is NumPy's array, or holds one, without importing NumPy."""
    kind = type(value)
    return hasattr(kind, "holds_array") or (kind.__name__, kind.__module__) == ("ndarray", "numpy")


def identity(n: int, dtype: DType) -> ConstantArray:
    """Return the identity matrix."""
    return _packed((row == column for row in range(n) for column in range(n)), (n, n), dtype)


def _kind(dtype: DType) -> DType:
    if dtype.name not in _FORMATS:
        raise KernelError(
            "unknown-dtype",
            f"an array of {brief(dtype)} cannot become a tensor",
            help=f"use one of {', '.join(_FORMATS)}; instructions convert to others",
        )
    return dtype


def _packed(numbers: Any, shape: Sizes, dtype: DType) -> ConstantArray:
    code = _FORMATS[dtype.name]
    convert: Callable[[Any], Any] = float if dtype.is_float else bool if code == "?" else int
    values = [convert(number) for number in numbers]
    try:
        if dtype is dtypes.BFLOAT16:
            values = [_narrowed(value) for value in values]
        data = struct.pack(f"<{len(values)}{code}", *values)
    except (struct.error, OverflowError) as error:
        text = f"a number of the array is outside the range of {dtype.name}"
        raise KernelError("wrong-value", text) from error
    return ConstantArray(dtype, shape, data)


def _narrowed(value: float) -> int:
    """Convert a number to bfloat16, rounding to nearest even."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _widened(bits: int) -> float:
    (value,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    return float(value)
