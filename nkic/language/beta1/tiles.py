"""Tiles of Beta 1, and tensors of tiles.

A tile is a view, as in later versions. A tensor whose partition dimension is not the first one
consists of *blocks*: each is a separate tile, made on first access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NoReturn

from nkic.base.device import KernelError
from nkic.language import views
from nkic.language.beta1 import access
from nkic.language.beta1.access import Axes
from nkic.language.beta1.indices import NO_AXES, as_index, constant
from nkic.language.beta1.masks import Mask, bounding, whole
from nkic.language.dtypes_api import as_dtype
from nkic.language.hosted import brief, surface, whole_number, whole_numbers
from nkic.language.tensor import NkiTensor
from nkic.language.trace import POISON, active, here
from nkic.language.views import volume
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer
from nkic.program.program import Tensor, View


@surface(
    "shape dtype buffer name ndim size itemsize assert_shape reshape expand_dims broadcast_to "
    "shape_2d as_tile view astype __getitem__ __setitem__ __iter__ __abs__ __int__ __float__ "
    "__index__ __iadd__ __isub__ __imul__ __itruediv__ __imod__ __ipow__ __iand__ __ior__ "
    "__ixor__ __ilshift__ __irshift__"
)
class Tile(NkiTensor):
    """A tensor in HBM, a tile, or a part of one.

    `_written_by` is the instruction that wrote it, as long as that can be redirected; `_part` is
    the written part, if not all. `_mask` hides a part of it from a matmul that takes it. Methods
    that record instructions are in nkic/language/beta1/operators.py.
    """

    __slots__ = ("_axes", "_mask", "_outside", "_part", "_written_by")
    __hash__ = None

    def __init__(
        self, view: View, axes: Axes | None = None, outside: tuple[access.Outside, ...] = ()
    ) -> None:
        super().__init__(view)
        self._axes = axes or (NO_AXES,) * len(view.shape)
        self._outside = outside
        self._written_by: Any = None
        self._mask: Mask | None = None
        self._part: Any = None

    # Indexing

    def __getitem__(self, key: Any) -> Tile:
        active().viewing()
        if isinstance(key, Mask):
            return self._masked(key)
        indexed = access.take(self._access, self._axes, key, tile_view)
        return Tile(indexed.view, indexed.axes, indexed.outside)

    def _masked(self, mask: Mask) -> Tile:
        """`t[mask]`: the same tile, whose masked elements are hidden from its consumer."""
        placed = mask.placed(self._axes, self.shape)
        if bounding(placed, self.shape) == (whole(self.shape), None):
            return self
        result = Tile(self._access, self._axes, self._outside)
        result._mask = placed if self._mask is None else self._mask & placed
        return result

    def __iter__(self) -> NoReturn:
        raise KernelError(
            "tensor-value",
            "a tensor cannot be looped over",
            help="loop over nl.affine_range, and index the tensor",
        )

    # Attributes

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.size

    @property
    def shape_2d(self) -> tuple[int, int]:
        """Partitions, and elements in each; undocumented (assumed)."""
        return self.shape[0], volume(self.shape[1:])

    def as_tile(self) -> Tile:
        """Return the tile itself; undocumented (assumed)."""
        return self

    def assert_shape(self, shape: Any) -> Tile:
        """Return the tensor itself. Raises `KernelError` if its shape differs."""
        if tuple(shape) != self.shape:
            raise KernelError("bad-shape", f"the shape is {self.shape}, not {tuple(shape)}")
        return self

    # Other views

    def reshape(self, *sizes: Any, shape: Any = None) -> Tile:
        """Return the same elements in another shape."""
        active().recording()
        wanted = _sizes(sizes, shape, self.size)
        if wanted == self.shape:
            return self
        fixed = tuple(outside for outside in self._outside if outside.part.is_fixed)
        return Tile(reshaped(self._access, wanted), None, fixed)

    def expand_dims(self, axis: Any) -> Tile:
        """Insert one or several dimensions of size 1."""
        if isinstance(axis, tuple | list):
            result = self
            for position in sorted(whole_numbers(axis, "axis")):
                result = result.expand_dims(position)
            return result
        axis = whole_number(axis, "axis")
        at = axis if axis >= 0 else axis + len(self.shape) + 1
        return self.reshape((*self.shape[:at], 1, *self.shape[at:]))

    def view(self, dtype: Any) -> Tile:
        """Reinterpret the same bytes as another dtype."""
        return Tile(views.reinterpret(self._access, as_dtype(dtype, 0)))

    def __repr__(self) -> str:
        return NkiTensor.__repr__(self).replace("NkiTensor", "tensor", 1)


def _sizes(sizes: tuple[Any, ...], shape: Any, count: int) -> tuple[int, ...]:
    """Return the requested shape, with one size of -1 inferred."""
    parts = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
    result = list(whole_numbers(parts if shape is None else shape, "the shape"))
    if -1 in result:
        at = result.index(-1)
        result[at] = count // max(volume(result) * -1, 1)
    return tuple(result)


def reshaped(view: View, shape: tuple[int, ...]) -> View:
    """Return the same elements in another shape; dimensions of size 1 may be added or dropped."""
    if len(shape) < 2 and views.on_chip(view):
        long = [d for d in zip(view.shape, view.strides, strict=True) if d[0] != 1][:1]
        if volume(view.shape) == volume(shape) and long in ([], [(view.shape[0], view.strides[0])]):
            return view._replace(shape=shape, strides=(view.strides[0],) * len(shape))
    padded = view
    if len(view.shape) < 2 and views.on_chip(view):
        padded = view._replace(shape=(*view.shape, 1), strides=(*view.strides, 1))
    try:
        return views.reshape(padded, shape)
    except views.ViewError as error:
        raise KernelError(error.slug, error.message, help=error.help) from error


def tile_view(value: Any) -> View | None:
    return value._access if isinstance(value, NkiTensor) else None


# ---- tensors of tiles ----------------------------------------------------------------------------


@surface("__getitem__ __setitem__", public=True)
class Blocks:
    """A tensor whose leading dimensions enumerate tiles."""

    __slots__ = ("_made", "_make", "_tile_shape", "buffer", "dtype", "name", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: tuple[int, ...],
        partition: int,
        dtype: DType,
        buffer: Buffer,
        make: Callable[[tuple[int, ...]], Tile],
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.buffer = buffer
        self.name = ""
        self._make = make
        self._tile_shape = shape[partition:]
        self._made: dict[tuple[int, ...], Tile] = {}

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return volume(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.size

    @property
    def _counts(self) -> tuple[int, ...]:
        return self.shape[: len(self.shape) - len(self._tile_shape)]

    def _tile(self, block: tuple[int, ...]) -> Tile:
        tile = self._made.get(block)
        if tile is None:
            outside = (n for n, at in enumerate(block) if not 0 <= at < self.shape[n])
            axis = next(outside, None)
            tile = self._make(block) if axis is None else self._placeholder(axis, block[axis])
            self._made[block] = tile
        return tile

    def _placeholder(self, axis: int, index: int) -> Tile:
        """Return a placeholder for a block out of bounds, which only masked accesses may use."""
        out_of_bounds = active().out_of_bounds
        number = POISON - 1 - len(out_of_bounds)  # never the number of a tensor in the program
        out_of_bounds[number] = (
            f"index {index} is outside of 0 to {self.shape[axis] - 1}; shape is {self.shape}"
        )
        tensor = Tensor(number, self.name, self.dtype, self._tile_shape, self.buffer, here())
        return Tile(views.whole(tensor))

    def _tiles(self) -> Iterator[Tile]:
        """Yield every block, in order."""
        for block in product(*map(range, self._counts)):
            yield self._tile(block)

    def _within(self, key: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Split a key into the coordinates of blocks that it fixes and the index of the block."""
        parts = list(key) if access.is_several(key) else [key]
        rank, count = len(self.shape), len(self._counts)
        if any(part is Ellipsis for part in parts):
            at = next(n for n, part in enumerate(parts) if part is Ellipsis)
            parts[at : at + 1] = [slice(None)] * (rank - len(parts) + 1)
        block = tuple(self._number(axis, part) for axis, part in enumerate(parts[:count]))
        return block, tuple(parts[count:])

    def _inner(self, block: tuple[int, ...]) -> Blocks:
        """Return the blocks with the given leading coordinates."""
        inner_shape = self.shape[len(block) :]
        left = len(self._counts) - len(block)

        def make(inner: tuple[int, ...]) -> Tile:
            return self._tile((*block, *inner))

        return Blocks(inner_shape, left, self.dtype, self.buffer, make)

    def _number(self, axis: int, part: Any) -> int:
        size = self.shape[axis]
        if isinstance(part, slice) and size == 1:
            return 0
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            index = as_index(start) if len(range(start, stop, step)) == 1 else None
        else:
            index = as_index(part)
        number = None if index is None else constant(index)
        if number is None:
            raise self._no_tile(part)
        return number % size if -size <= number < size else number

    def _no_tile(self, part: Any = None) -> KernelError:
        count = len(self._counts)
        actual = f", not {brief(part)}" if part is not None else ""
        return KernelError(
            "block-dimension",
            f"the first {count} dimension{'s' * (count > 1)} of a tensor of shape {self.shape} "
            f"select a block, and must be indexed with an int or a loop variable{actual}",
            help="index one block at a time, or put the partition dimension first",
        )

    def __getitem__(self, key: Any) -> Any:
        active().viewing()
        block, inner_key = self._within(key)
        if len(block) < len(self._counts):
            return self._inner(block)
        tile = self._tile(block)
        return tile[inner_key] if inner_key else tile

    def view(self, dtype: Any) -> Blocks:
        """Reinterpret the same bytes as another dtype."""
        kind = as_dtype(dtype, 0)
        shape = (*self.shape[:-1], self.shape[-1] * self.dtype.size // kind.size)
        return Blocks(
            shape, len(self._counts), kind, self.buffer, lambda at: self._tile(at).view(dtype)
        )

    def reshape(self, *sizes: Any, shape: Any = None) -> Any:
        """Return the same blocks under other leading dimensions; a block's shape is fixed."""
        wanted = _sizes(sizes, shape, self.size)
        counts = wanted[: len(wanted) - len(self._tile_shape)]
        if volume(counts) != volume(self._counts) or wanted[len(counts) :] != self._tile_shape:
            text = f"blocks of shape {self._tile_shape} cannot become {wanted}"
            raise KernelError("block-dimension", text, help="reshape each block")

        def same(block: tuple[int, ...]) -> Tile:
            number = 0
            for size, at in zip(counts, block, strict=True):
                number = number * size + at
            old: list[int] = []
            for size in reversed(self._counts):
                number, coordinate = divmod(number, size)
                old.insert(0, coordinate)
            return self._tile(tuple(old))

        if not counts:
            return same(())
        return Blocks(wanted, len(counts), self.dtype, self.buffer, same)

    __iter__ = None

    def __repr__(self) -> str:
        return f"tensor({self.dtype.name}{list(self.shape)} in {self.buffer.value}, in blocks)"
