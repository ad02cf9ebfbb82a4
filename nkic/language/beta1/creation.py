"""Creation of Beta 1's tensors from a shape: `nl.ndarray`, `nl.zeros` and similar.

Sources: the pages of these functions, of `nki.compiler.sbuf` and `psum`, and the direct allocation
guide, SDK 2.20 to 2.26.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.ir.program import Instruction
from nkic.language.beta1.allocators import Allocator
from nkic.language.beta1.emit import binders, emit, new, operand, result, state
from nkic.language.beta1.extents import ALL, extent_of
from nkic.language.beta1.moving import copy, tile
from nkic.language.beta1.tiles import Blocks, Tile
from nkic.language.dtypes_api import as_buffer, as_dtype
from nkic.language.hosted import plain
from nkic.language.tensors import creation
from nkic.language.tensors.arrays import ConstantArray, makers
from nkic.language.tensors.constant_data import of_numpy
from nkic.language.tensors.constant_data import shared_constant as constant_tensor
from nkic.language.tensors.creation import ParDim
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.texts import brief
from nkic.language.trace import active
from nkic.machine.dtypes import DType
from nkic.machine.memory import Buffer


def ndarray(
    shape: Any,
    dtype: Any,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: bool = False,
) -> Any:
    """Return a new, uninitialised tensor: a tile, or blocks of tiles.

    With `lazy_initialization`, which is undocumented, matmuls that accumulate into a tile in PSUM
    start at 0 (assumed).
    """
    if lazy_initialization:
        return zeros(shape, dtype, buffer=buffer, name=name)
    return _make(shape, dtype, buffer, name, lambda tile: tile)


def _make(shape: Any, dtype: Any, buffer: Any, name: str, filled: Callable[[Tile], Tile]) -> Any:
    sizes, partition = _sizes(shape)
    placed = buffer if isinstance(buffer, Allocator) else None
    memory = placed.buffer if placed else Buffer.SBUF if buffer is None else as_buffer(buffer)
    kind = as_dtype(dtype)
    if not memory.on_chip:
        return filled(new(sizes, kind, memory, name))
    within = sizes[partition:]
    small = prod(within[1:]) * kind.size

    def make(place: tuple[int, ...]) -> Tile:
        address = placed.address(place, within[0], small) if placed else None
        full = within if len(within) > 1 else (*within, 1)
        tensor = _tensor(full, kind, memory, name, address)
        view = tensor._access
        if len(within) == 1:
            view = view._replace(shape=within, strides=view.strides[:1])
        return filled(Tile(view))

    if not partition:
        return make(())
    if prod(sizes[:partition]) == 1:
        only = make((0,) * partition)
        return Blocks(sizes, partition, kind, memory, lambda place: only)
    blocks = Blocks(sizes, partition, kind, memory, make)
    list(blocks._tiles())
    return blocks


def _tensor(
    sizes: tuple[int, ...], kind: DType, memory: Buffer, name: str, address: Any
) -> NkiTensor:
    result = creation.make_tensor(sizes, kind, memory, name, None)
    tensor = result._access.tensor
    if address is not None and tensor.number >= 0:
        tensor.fixed = creation.as_address(address, memory, sizes, kind)
        tensor.first = tensor.fixed.partition
    return result


def _sizes(shape: Any) -> tuple[tuple[int, ...], int]:
    """Return the sizes, and the index of the partition dimension."""
    parts = shape if isinstance(shape, tuple | list) else (shape,)
    sizes: list[int] = []
    partition = 0
    for axis, part in enumerate(parts):
        size = plain(part)
        if isinstance(size, float) and size.is_integer():
            size = int(size)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            text = f"size {axis} of a shape is {brief(part)}, but must be an int of at least 1"
            raise KernelError("bad-shape", text, argument="shape", position=0)
        if isinstance(part, ParDim):
            partition = axis
        sizes.append(int(size))
    return tuple(sizes), partition


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: bool = True,
) -> Any:
    """Return a new tensor filled with a number.

    Zeros in PSUM are written only when they are needed, regardless of `lazy_initialization`: a
    matmul that comes first overwrites.
    """

    def fill(tensor: Tile) -> Tile:
        if tensor._access.tensor.buffer is Buffer.PSUM:
            return _fill_lazily(tensor, fill_value)
        if not tensor._access.tensor.on_chip:
            active().library("_fill")(operand(tensor), fill_value)
            return tensor
        return result("memset", tensor, value=fill_value)

    return _make(shape, dtype, buffer, name, fill)


def _fill_lazily(tensor: Tile, value: Any) -> Tile:
    """Fill a tile on its first use, unless that is a matmul that accumulates onto zeros."""

    def fill() -> None:
        emit("memset", tensor, value=value)
        last = active().body[-1]
        assert isinstance(last, Instruction)
        state().zero_fills.add(last.number)

    if value:
        fill()
    else:
        state().zeros[tensor._access.tensor.number] = fill
    return tensor


def zeros(
    shape: Any,
    dtype: Any,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: bool = True,
) -> Any:
    """Return a new tensor of zeros."""
    return full(shape, 0, dtype, buffer=buffer, name=name)


def ones(shape: Any, dtype: Any, *, buffer: Any = None, name: str = "") -> Any:
    """Return a new tensor of ones."""
    return full(shape, 1, dtype, buffer=buffer, name=name)


def zeros_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    """Return a new tensor of zeros in the shape of another one."""
    return zeros(_shape_of(a), dtype or a.dtype, buffer=buffer or a.buffer, name=name)


def empty_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    """Return a new, uninitialised tensor in the shape of another one."""
    return ndarray(_shape_of(a), dtype or a.dtype, buffer=buffer or a.buffer, name=name)


def _shape_of(a: Any) -> Any:
    if isinstance(a, Blocks):
        at = len(a._counts)
        return (*a.shape[:at], ParDim(a.shape[at]), *a.shape[at + 1 :])
    return tile(a).shape


def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """Return a tensor in HBM with the contents of an array."""
    if isinstance(constant, NkiTensor):
        return tile(constant)
    wanted = None if dtype is None else as_dtype(dtype)
    return Tile(
        constant_tensor(constant if wanted is None else _converted(constant, wanted))._access
    )


def _converted(constant: Any, dtype: DType) -> Any:
    array = of_numpy(constant)
    return array.astype(dtype) if isinstance(array, ConstantArray) else array


def shared_identity_matrix(n: int, dtype: Any = "uint8") -> Tile:
    """Return the identity matrix in HBM, for nl.load."""
    array = makers(lambda count: None)["identity"](n, dtype=as_dtype(dtype))
    return shared_constant(array)


def device_print(prefix: str, x: Any, *, mask: Any = None) -> None:
    """Print a tensor at run time."""
    source = tile(x, "x")
    if extent_of(source, mask) != ALL:
        source = copy(source, mask=mask)
    active().recording()
    binders()["device_print"](prefix, operand(source))
