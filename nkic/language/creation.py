"""`nl.ndarray`: new tensors, and the validation of its arguments."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn

from nkic.base import files
from nkic.base.device import KernelError
from nkic.base.diagnostics import UsageFailed
from nkic.base.text import grouped
from nkic.language import views
from nkic.language.dtypes_api import as_buffer, as_dtype
from nkic.language.hosted import brief, is_array, plain, surface
from nkic.language.tensor import NkiTensor
from nkic.language.trace import POISON, active, complain, here
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.targets import MAX_RANK, MAX_SIZE, PARTITIONS, Address, Buffer
from nkic.program.program import Tensor

# ---- The data of constants: elements of a shape and type, that become tensors in HBM ------------
# Kernels compute with NumPy's own arrays; `nl.shared_constant` copies them into such data.

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
        code = _FORMATS[self.dtype.name]
        numbers: Iterator[Any] = (number for (number,) in struct.iter_unpack(f"<{code}", self.data))
        if self.dtype is dtypes.BFLOAT16:
            numbers = map(_widened, numbers)
        return _packed(numbers, self.shape, _kind(dtype))


def identity(n: int, dtype: DType) -> ConstantArray:
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


@surface(called=True)
class ParDim(int):
    """`nl.par_dim(n)`: marks the partition dimension, which is always the first."""


class _Ndarray(type):
    """Metaclass of `nl.ndarray`: supports calls and isinstance."""

    def __call__(
        cls, shape: Any, dtype: Any, buffer: Any = Buffer.SBUF, name: str = "", address: Any = None
    ) -> NkiTensor:
        return make_tensor(shape, dtype, buffer, name, address)

    # The name of the function in Python's messages about its arguments.
    __call__.__qualname__ = "nl.ndarray"

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, NkiTensor)


@surface(called=True)
class ndarray(metaclass=_Ndarray):  # noqa: N801  (the name is NKI's)
    """`nl.ndarray`."""


class _TensorClass(type):
    """Metaclass of `nl.NkiTensor`: supports isinstance; tensors are made by `nl.ndarray`."""

    def __call__(cls, *args: Any, **keywords: Any) -> NoReturn:
        raise KernelError(
            "wrong-call",
            "nl.NkiTensor wraps the storage of a framework, which a kernel does not have",
            help="make tensors with nl.ndarray(shape, dtype, buffer)",
        )

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, NkiTensor)


@surface(called=True)
class TensorClass(metaclass=_TensorClass):
    """`nl.NkiTensor`, for annotations and isinstance."""


def make_tensor(
    shape: Any, dtype: Any, buffer: Any, name: Any = "", address: Any = None
) -> NkiTensor:
    """Return a new, uninitialised tensor.

    `address` is (partition, byte within each partition), on chip only. Public texts give the unit
    of the second number as elements in one place and as bytes in two; published kernels pass bytes.
    """
    memory = buffer if type(buffer) is Buffer else as_buffer(buffer, 2)
    kind = dtype if type(dtype) is DType and not dtype.is_wide else as_dtype(dtype, 1)
    is_plain = _is_plain(shape)
    sizes = shape if is_plain else _sizes(shape)
    problem = None if is_plain else _problem(sizes, memory)
    if problem:
        slug, message, help = problem
        if slug == "too-many-partitions" and memory is Buffer.SBUF and active().has_no_results:
            help += "; a tensor for results is made with buffer=nl.shared_hbm"
        complain(slug, message, help=help, argument="shape", position=0)
        return NkiTensor(
            views.whole(Tensor(POISON, name or "?", kind, sizes or (1,), memory, here()))
        )
    fixed = None if address is None else as_address(address, memory, sizes, kind)
    if name != "":
        name = _name(name)
    trace = active()
    if memory is Buffer.SHARED_HBM:
        return NkiTensor(views.whole(trace.tensor(sizes, kind, memory, name)))
    return NkiTensor(views.whole(trace.declare(sizes, kind, memory, name, trace.here(), fixed)))


def _name(name: Any) -> str:
    if name is None or isinstance(name, str):
        return name or ""
    text = f"the name of a tensor must be a string, not {brief(name)}"
    raise KernelError("bad-shape", text, argument="name", position=3)


_INT = {int}


def _is_plain(shape: Any) -> bool:
    """Return whether a shape is the usual case: two sizes that are valid in every memory."""
    if type(shape) is not tuple or len(shape) != 2:
        return False
    rows, columns = shape
    return type(rows) is type(columns) is int and 0 < rows <= PARTITIONS and 0 < columns <= MAX_SIZE


def _sizes(shape: Any) -> tuple[int, ...]:
    if type(shape) is tuple and set(map(type, shape)) == _INT:  # the usual case
        return shape
    shape = plain(shape)
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, tuple | list):
        raise _bad_shape(f"a shape must be a tuple of ints, not {brief(shape)}")
    sizes = [size if isinstance(size, int) else plain(size) for size in sizes]
    for axis, size in enumerate(sizes):
        if isinstance(size, float):
            integer = f"write {int(size)}, or " if size.is_integer() else ""
            help = f"{integer}use `//` instead of `/`, which gives an int"
            raise _bad_shape(f"dimension {axis} of the shape is a float, {brief(size)}", help)
        if not isinstance(size, int) or isinstance(size, bool):
            raise _bad_shape(f"size {axis} of a shape is not an int: {brief(size)}")
        if isinstance(size, ParDim) and axis:
            raise KernelError(
                "block-dimension",
                f"the partition dimension is dimension {axis} of {tuple(map(int, sizes))}; "
                "it must be the first",
                help="make a list of tensors, or move the partition dimension to the front",
                argument="shape",
                position=0,
            )
    return tuple(int(size) for size in sizes)


def _bad_shape(text: str, help: str = "") -> KernelError:
    return KernelError("bad-shape", text, help=help, argument="shape", position=0)


def _problem(sizes: tuple[int, ...], buffer: Buffer) -> tuple[str, str, str] | None:
    """Return slug, message and help if a tensor cannot have this shape, else None."""
    if sizes and min(sizes) < 1:
        advice = "do not declare the tensor if it has nothing to hold"
        return "bad-shape", f"every size of a tensor must be at least 1; shape is {sizes}", advice
    if len(sizes) > MAX_RANK:
        advice = "leave out dimensions of size 1, or join neighbouring ones"
        return "bad-shape", f"a tensor has at most {MAX_RANK} dimensions, not {len(sizes)}", advice
    if sizes and max(sizes) > MAX_SIZE:
        text = f"a dimension of a tensor has at most {grouped(MAX_SIZE)} elements, not "
        return "bad-shape", text + grouped(max(sizes)), "split the tensor"
    min_rank = 2 if buffer.on_chip else 1
    if len(sizes) < min_rank:
        return (
            "bad-shape",
            f"a tensor in {buffer.value} must have at least {min_rank} dimensions; "
            f"shape is {sizes}",
            "write (1, n) for n elements in one partition, (n, 1) for one element in each of n "
            "partitions",
        )
    if buffer.on_chip and sizes[0] > PARTITIONS:
        return (
            "too-many-partitions",
            f"{buffer.value} has {PARTITIONS} partitions; dimension 0 of {sizes} needs {sizes[0]}",
            f"loop over tiles of at most {PARTITIONS} rows, or make the rows a free dimension",
        )
    return None


def as_address(address: Any, buffer: Buffer, sizes: tuple[int, ...], dtype: DType) -> Address:
    """Convert (partition, byte) to an address. Raises `KernelError` if the tensor does not fit."""
    pair = tuple(address) if isinstance(address, tuple | list) else ()
    if len(pair) != 2 or any(type(n) is not int or n < 0 for n in pair):
        raise KernelError(
            "bad-address",
            f"an address must be (partition, byte), two ints of at least 0, not {brief(address)}",
        )
    if not buffer.on_chip:
        raise KernelError(
            "bad-address",
            f"a tensor in {buffer.value} cannot be given an address",
            help="leave it out",
        )
    if pair[0] + sizes[0] > PARTITIONS:
        raise KernelError(
            "bad-address",
            f"{sizes[0]} partitions from partition {pair[0]} on go beyond the last one, "
            f"{PARTITIONS - 1}",
        )
    if pair[1] % dtype.size:
        raise KernelError(
            "bad-address",
            f"byte {pair[1]} is not a multiple of the {dtype.size} bytes of {dtype.name}",
            help=f"the next one is {-(-pair[1] // dtype.size) * dtype.size}",
        )
    return Address(*pair)


# ---- `nl.shared_constant`: data in the artifact that is in HBM when the program starts ----------
# Source: nki.language.shared_constant. The data is an array, or the path of a .npy file, which is
# read at compile time; a relative path starts at the working directory. Under a command, the file
# must be in a folder that the command line names (`nkic.base.files`).

MAX_BYTES = 256 << 20


def shared_constant(constant: Any) -> NkiTensor:
    """Return a tensor in shared HBM with this data; interned by its contents."""
    if isinstance(constant, NkiTensor) and constant._access.tensor.buffer is Buffer.SHARED_HBM:
        return constant  # an array of the running program: an input in HBM
    array = _read(constant) if isinstance(constant, str) else data_of(constant)
    if array is None:
        raise KernelError(
            "argument-kind",
            f"a constant must be a NumPy array or the path of a .npy file, not {brief(constant)}",
            argument="constant",
            position=0,
        )
    if not array.shape or not array.data:
        raise KernelError("bad-shape", f"a constant must have elements; shape is {array.shape}")
    if len(array.shape) > MAX_RANK:
        text = f"a tensor has at most {MAX_RANK} dimensions, not {len(array.shape)}"
        raise KernelError("bad-shape", text, help="reshape the array")
    return NkiTensor(views.whole(active().constant(array.shape, array.dtype, array.data)))


def data_of(value: Any) -> ConstantArray | None:
    """Copy an array, whose 64-bit numbers become 32-bit ones; None if the value is none."""
    if isinstance(value, ConstantArray):
        return value
    if not is_array(value):
        return None
    value = getattr(value, "_value", value) if hasattr(type(value), "holds_array") else value
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(value.dtype.name)
    if narrow is not None:
        narrowed = value.astype(narrow)
        if narrow != "float32" and (narrowed != value).any():
            raise KernelError("wrong-value", f"a number of the array is outside of {narrow}")
        value = narrowed
    dtype = as_dtype(value.dtype)
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return ConstantArray(dtype, tuple(value.shape), little.tobytes())


def refuse_written(constants: list[Tensor], written: set[int]) -> None:
    """Report constants that the program writes: all cores and runs share them."""
    for tensor in constants:
        if tensor.number in written:
            active().report.error(
                "constant-written",
                f"{tensor.name} is a shared constant, but an instruction writes to it",
                tensor.at.primary,
                help="copy it to another tensor first",
            )


def _read(path: str) -> ConstantArray:
    try:
        data = files.read(path, MAX_BYTES)
    except UsageFailed as failed:
        reason = failed.diagnostics[0]
        raise _unusable(reason.message, reason.help) from failed
    active().reads[path] = sha256(data).hexdigest()
    try:
        return _array(data)
    except ValueError as error:
        raise _unusable(f"`{path}` cannot be used as a constant: {error}") from error


def _unusable(message: str, help: str = "") -> KernelError:
    return KernelError(
        "constant-file",
        message,
        help=help or "write it with numpy.save, in an element type of NKI",
        argument="constant",
        position=0,
    )


def _array(data: bytes) -> ConstantArray:
    """Decode a .npy file. Raises `ValueError`."""
    from nkic.artifact import archive, arrays

    source = archive.Plain(archive.Opened(io.BytesIO(data), len(data)))
    try:
        header = arrays.read_header(source)
        dtype = arrays.of_numpy(header.element)
        if dtype is None:
            raise ValueError(f"its NumPy type {header.element} is not an NKI dtype")
        if header.start + header.data_bytes != len(data):
            remaining = len(data) - header.start
            raise ValueError(f"{remaining:,} bytes follow its header, not {header.data_bytes:,}")
        return ConstantArray(dtype, header.shape, arrays.read_data(source, header).tobytes())
    except archive.Damaged as error:
        raise ValueError(str(error)) from error
