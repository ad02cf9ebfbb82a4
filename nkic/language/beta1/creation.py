"""Creation of Beta 1's tensors from a shape: `nl.ndarray`, `nl.zeros` and similar.

Sources: the pages of these functions, of `nki.compiler.sbuf` and `psum`, and the direct allocation
guide, SDK 2.20 to 2.26.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any

from nkic.base.device import KernelError
from nkic.language import creation
from nkic.language.beta1.emit import binders, fill_lazily, new, operand, result
from nkic.language.beta1.extents import ALL, extent_of
from nkic.language.beta1.moving import copy, tile
from nkic.language.beta1.tiles import Blocks, Tile
from nkic.language.creation import ParDim, data_of, identity
from nkic.language.creation import shared_constant as constant_tensor
from nkic.language.dtypes_api import as_buffer, as_dtype
from nkic.language.hosted import brief, plain, surface
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active
from nkic.machine.dtypes import DType
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer

# ---- `nki.compiler` of Beta 1: placement of tiles by the kernel ---------------------------------
# Source: nki.compiler.sbuf, nki.compiler.psum and the direct allocation guide, SDK 2.21 to 2.26.

Place = Callable[[tuple[int, ...], int, int], Any]


@surface()
class Allocator:
    """The value of `buffer=`: a function from a block to its address, or None."""

    def __init__(self, buffer: Buffer, place: Place | None) -> None:
        self.buffer = buffer
        self._place = place

    def address(self, block: tuple[int, ...], partitions: int, size: int) -> Any:
        """Return (partition, byte) for a block of `partitions` partitions of `size` bytes."""
        if self._place is None:
            return None
        placed = self._place(block, partitions, size)
        numbers = [plain(n) for n in placed] if isinstance(placed, tuple | list) else []
        wanted = 3 if self.buffer is Buffer.PSUM else 2
        if len(numbers) != wanted or not all(isinstance(n, int) for n in numbers):
            words = "(bank, partition, byte)" if wanted == 3 else "(partition, byte)"
            text = f"an allocation function must return {words}, not {brief(placed)}"
            raise KernelError("bad-address", text)
        if wanted == 2:
            return tuple(numbers)
        bank, partition, byte = numbers
        return partition, bank * PSUM_BANK_BYTES + byte

    def __repr__(self) -> str:
        return f"<allocation in {self.buffer.value}>"


def _number(block: Sequence[int], counts: Sequence[int]) -> int:
    """Return the row-major number of a block in a grid of `counts`, modulo each count."""
    sizes = tuple(counts)
    return sum(
        at % size * prod(sizes[n + 1 :])
        for n, (at, size) in enumerate(zip(block, sizes, strict=False))
    )


class _Memory:
    """A memory: usable as `buffer=`, and a factory of allocators."""

    buffer: Buffer

    def alloc(self, func: Any) -> Allocator:
        """Place blocks by a function of block, partitions and bytes."""
        return Allocator(self.buffer, lambda block, p, f: func(idx=block, pdim_size=p, fdim_size=f))

    def auto_alloc(self) -> Allocator:
        """Leave the placement to the compiler."""
        return Allocator(self.buffer, None)


@surface("alloc mod_alloc auto_alloc")
class Sbuf(_Memory):
    """`ncc.sbuf`."""

    buffer = Buffer.SBUF

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        """Place blocks one after another from an address on, modulo the counts."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            first = base_partition + _number(block, num_par_tiles) * partitions
            return first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.SBUF, place)


@surface("alloc mod_alloc auto_alloc")
class Psum(_Memory):
    """`ncc.psum`."""

    buffer = Buffer.PSUM

    def mod_alloc(
        self,
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: Any = (),
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        """Place blocks one after another from a bank on, modulo the counts."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int, int]:
            bank = base_bank + _number(block, num_bank_tiles)
            first = base_partition + _number(block, num_par_tiles) * partitions
            return bank, first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.PSUM, place)


def allocation_scope() -> Nothing:
    """`nki.compiler.allocation_scope`: a block without effect in nkic."""
    return Nothing()


def multi_buffer(factor: int = 2) -> Nothing:
    """`nki.compiler.multi_buffer`: without effect, since nkic decides about multiple buffering."""
    return Nothing()


@surface("__enter__ __exit__")
class Nothing(AbstractContextManager[None]):
    """A `with` block that affects only the vendor's compiler."""

    def __exit__(self, *error: object) -> None:
        return None


def _unchanged(func: Any = None) -> Any:
    return (lambda function: function) if func is None else func


def _enable_stack_allocator(func: Any = None, log_level: int = 50) -> Any:
    return _unchanged(func)


# Decorators of nki.compiler that affect only the vendor's compiler.
DECORATORS = {
    "enable_stack_allocator": _enable_stack_allocator,
    "force_auto_alloc": _unchanged,
    "skip_middle_end_transformations": _unchanged,
}


def ndarray(
    shape: Any, dtype: Any, *, buffer: Any = None, name: str = "", lazy_initialization: bool = False
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
            fill_lazily(tensor, fill_value)
            return tensor
        if not tensor._access.tensor.on_chip:
            active().library("_fill")(operand(tensor), fill_value)
            return tensor
        return result("memset", tensor, value=fill_value)

    return _make(shape, dtype, buffer, name, fill)


def zeros(
    shape: Any, dtype: Any, *, buffer: Any = None, name: str = "", lazy_initialization: bool = True
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
    data = None if dtype is None else data_of(constant)
    array = constant if data is None else data.astype(as_dtype(dtype))
    return Tile(constant_tensor(array)._access)


_MOST_ROWS = 1024  # more than the tensor engine multiplies by at once


def shared_identity_matrix(n: int, dtype: Any = "uint8") -> Tile:
    """Return the identity matrix in HBM, for nl.load."""
    if not isinstance(n, int) or not 1 <= n <= _MOST_ROWS:
        text = f"an identity matrix has 1 to {_MOST_ROWS:,} rows, not {brief(n)}"
        raise KernelError("bad-shape", text, argument="n", position=0)
    active().budget.charge(n * n)
    return shared_constant(identity(int(n), as_dtype(dtype)))


def device_print(prefix: str, x: Any, *, mask: Any = None) -> None:
    """Print a tensor at run time."""
    source = tile(x, "x")
    if extent_of(source, mask) != ALL:
        source = copy(source, mask=mask)
    active().recording()
    binders()["device_print"](prefix, operand(source))
