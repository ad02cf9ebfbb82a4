"""Arrays known at compile time: the results of NumPy's array constructors in a kernel.

They have a shape and an element type, can be reshaped and converted, and become tensors by
`nl.shared_constant`. They support no arithmetic: a kernel computes with tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.sizes import volume
from nkic.language.texts import brief
from nkic.machine import dtypes
from nkic.machine.dtypes import DType

Number = float | int | bool
Sizes = tuple[int, ...]

_FORMATS = {
    **{"float32": "f", "float16": "e", "bool": "?"},
    **{"int8": "b", "int16": "h", "int32": "i", "uint8": "B", "uint16": "H", "uint32": "I"},
    "bfloat16": "H",  # the upper half of a float32
}


class ConstantArray:
    """A NumPy array in a kernel: elements in row-major order, little-endian."""

    def __init__(self, dtype: DType, shape: Sizes, data: bytes) -> None:
        self._dtype = dtype
        self._shape = shape
        self._data = data

    __hash__ = None  # type: ignore[assignment]  # unhashable, like NumPy's
    __iter__ = None  # otherwise Python would iterate by __getitem__

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> Sizes:
        """Sizes of the dimensions."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return volume(self._shape)

    def reshape(self, *shape: Any) -> ConstantArray:
        """Return the same elements in another shape, in which one size may be -1."""
        wanted = _sizes(shape[0] if len(shape) == 1 else shape)
        known = volume(size for size in wanted if size != -1)
        sizes = tuple(self.size // max(known, 1) if size == -1 else size for size in wanted)
        if volume(sizes) != self.size or wanted.count(-1) > 1:
            raise _error(f"cannot reshape array of size {self.size} into shape {wanted}")
        return ConstantArray(self._dtype, sizes, self._data)

    def astype(self, dtype: Any) -> ConstantArray:
        """Return the array with its elements converted."""
        return _packed(self._numbers(), self._shape, _kind(dtype))

    def _numbers(self) -> Iterator[Number]:
        code = _FORMATS[self._dtype.name]
        numbers = (number for (number,) in struct.iter_unpack(f"<{code}", self._data))
        return map(_widened, numbers) if self._dtype is dtypes.BFLOAT16 else numbers

    def __repr__(self) -> str:
        return f"array(shape={self._shape}, dtype={self._dtype.name})"


def is_array(value: Any) -> bool:
    """Return whether the value is an array, a kernel's or NumPy's, without importing NumPy."""
    kind = type(value)
    return kind is ConstantArray or (kind.__name__, kind.__module__) == ("ndarray", "numpy")


def makers(allow: Callable[[int], None]) -> dict[str, Callable[..., ConstantArray]]:
    """Return `array`, `zeros`, `eye` and so on for the `numpy` of kernels.

    `allow` is called with the number of elements before they are made.
    """

    def filled(shape: Any, fill_value: Number, dtype: Any = None) -> ConstantArray:
        sizes = _sizes(shape)
        if any(size < 0 for size in sizes):
            raise ValueError("negative dimensions are not allowed")
        allow(volume(sizes))
        kind = _kind(dtype) if dtype is not None else _default_dtype([fill_value])
        element = _packed([fill_value], (1,), kind)._data
        return ConstantArray(kind, sizes, element * volume(sizes))

    def eye(
        N: int,  # noqa: N803  (the name is NumPy's)
        M: int | None = None,  # noqa: N803
        k: int = 0,
        dtype: Any = None,
    ) -> ConstantArray:
        columns = N if M is None else M
        allow(N * columns)
        rows = (column == row + k for row in range(N) for column in range(columns))
        return _packed(map(int, rows), (N, columns), _kind(dtype or dtypes.FLOAT32))

    def array(values: Any, dtype: Any = None) -> ConstantArray:
        if isinstance(values, ConstantArray):
            return values if dtype is None else values.astype(dtype)
        numbers: list[Number] = []
        sizes = _flatten(values, numbers, allow)
        allow(len(numbers))
        kind = _kind(dtype) if dtype is not None else _default_dtype(numbers)
        return _packed(numbers, sizes, kind)

    def arange(*bounds: int, dtype: Any = None) -> ConstantArray:
        numbers = range(*bounds)
        allow(len(numbers))
        return _packed(numbers, (len(numbers),), _kind(dtype or dtypes.INT32))

    return {
        "array": array,
        "asarray": array,
        "full": filled,
        "zeros": lambda shape, dtype=dtypes.FLOAT32: filled(shape, 0, dtype),
        "ones": lambda shape, dtype=dtypes.FLOAT32: filled(shape, 1, dtype),
        "eye": eye,
        "identity": lambda n, dtype=None: eye(n, dtype=dtype),
        "arange": arange,
    }


def _sizes(shape: Any) -> Sizes:
    """Convert a shape, which may be a single size."""
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"'{type(size).__name__}' object cannot be interpreted as an integer")
    return sizes


def _kind(dtype: Any) -> DType:
    """Convert a NumPy element type. Raises `KernelError` if no engine supports it."""
    name = dtype if isinstance(dtype, str) else brief(dtype)
    element_type = dtype if isinstance(dtype, DType) else dtypes.find(name)
    if element_type is None or element_type.name not in _FORMATS:
        raise KernelError(
            "unknown-dtype",
            f"an array of {brief(dtype)} cannot become a tensor",
            help=f"use one of {', '.join(_FORMATS)}; instructions convert to others",
        )
    return element_type


def _default_dtype(numbers: Sequence[Number]) -> DType:
    """Return the default dtype for these numbers: NumPy's has 64 bits, which no engine supports."""
    if any(isinstance(number, float) for number in numbers) or not numbers:
        return dtypes.FLOAT32
    return dtypes.BOOL if all(isinstance(number, bool) for number in numbers) else dtypes.INT32


def _packed(numbers: Any, shape: Sizes, dtype: DType) -> ConstantArray:
    code = _FORMATS[dtype.name]
    convert: Callable[[Any], Any] = float if dtype.is_float else bool if code == "?" else int
    values = [convert(number) for number in numbers]
    try:
        if dtype is dtypes.BFLOAT16:
            values = [_narrowed(value) for value in values]
        data = struct.pack(f"<{len(values)}{code}", *values)
    except (struct.error, OverflowError) as error:
        raise _error(f"a number of the array is outside the range of {dtype.name}") from error
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


def _flatten(values: Any, into: list[Number], allow: Callable[[int], None]) -> Sizes:
    """Append the numbers of nested lists to `into` and return their shape."""
    if isinstance(values, int | float):
        into.append(values)
        return ()
    if not isinstance(values, list | tuple):
        raise _error(f"an array is made of lists of numbers, not of {brief(values)}")
    allow(len(values))
    shapes = {_flatten(value, into, allow) for value in values}
    if len(shapes) > 1:
        raise _error("the lists that an array is made of have different lengths")
    return (len(values), *chain.from_iterable(shapes))


def _error(message: str) -> KernelError:
    return KernelError("wrong-value", message)
