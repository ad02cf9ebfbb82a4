"""`nl.ndarray`: new tensors, and the validation of its arguments."""

from __future__ import annotations

from typing import Any, NoReturn

from nkic.base.kernel_errors import KernelError
from nkic.base.text import grouped
from nkic.ir.tensors import Tensor
from nkic.language.complain import complain
from nkic.language.dtypes_api import as_buffer, as_dtype
from nkic.language.hosted import plain
from nkic.language.tensors import views
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.texts import brief
from nkic.language.trace import POISON, active, here
from nkic.machine.dtypes import DType
from nkic.machine.memory import MAX_RANK, MAX_SIZE, PARTITIONS, Address, Buffer


class ParDim(int):
    """`nl.par_dim(n)`: marks the partition dimension, which is always the first."""


class _Ndarray(type):
    """Metaclass of `nl.ndarray`: supports calls and isinstance."""

    def __call__(
        cls,
        shape: Any,
        dtype: Any,
        buffer: Any = Buffer.SBUF,
        name: str = "",
        address: Any = None,
    ) -> NkiTensor:
        return make_tensor(shape, dtype, buffer, name, address)

    # The name of the function in Python's messages about its arguments.
    __call__.__qualname__ = "nl.ndarray"

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, NkiTensor)


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
    """Convert a shape to ints. Raises `KernelError` if it is not one."""
    if type(shape) is tuple and set(map(type, shape)) == _INT:  # the usual case
        return shape
    shape = plain(shape)
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, tuple | list):
        raise _bad_shape(f"a shape must be a tuple of ints, not {brief(shape)}")
    sizes = [size if isinstance(size, int) else plain(size) for size in sizes]
    for axis, size in enumerate(sizes):
        if isinstance(size, float):
            integer = f"write {int(size)}, or " if size.is_integer() else "write "
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
