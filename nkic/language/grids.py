"""Grids of NKI 0.7: views of a tensor indexed by coordinates of tiles, or of blocks of tiles.

A grid is a rectangle of its source, and the step of each coordinate in elements. Making or indexing
a grid allocates and records nothing. Sources: nki.language.tiles, blocks, alloc_tiles,
alloc_blocks, NkiGrid, NkiTileGrid, NkiBlockGrid of 0.7. docs/fidelity.md lists what those pages
leave open.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.language.creation import make_tensor
from nkic.language.dtypes_api import as_buffer
from nkic.language.hosted import brief, plain, surface
from nkic.language.tensor import NkiTensor
from nkic.language.views import replaced
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer

Shape = tuple[int, ...]


class Rectangle(NamedTuple):
    """The elements that a grid selects: the first one and the count along each dimension.

    `open_dims` lists the dimensions that still have a coordinate.
    """

    starts: Shape
    sizes: Shape
    open_dims: Shape


class Storage(NamedTuple):
    """The tensor that a grid is a view of.

    If `counts` is not empty, the tiles follow one another along the free dimension of `tensor`,
    `counts` of them along each dimension of the grid. The first `untiled` dimensions have a
    coordinate for each element; tiles and blocks have size 1 along them.
    """

    tensor: NkiTensor
    counts: Shape = ()
    untiled: int = 0


@surface("__getitem__", public=True)
class NkiGrid:
    """The base class of grids of tiles and of blocks."""

    __slots__ = ("_area", "_block", "_storage", "_tile")
    __iter__ = None  # otherwise Python would iterate until a coordinate raises

    def __init__(self, storage: Storage, area: Rectangle, tile: Shape, block: Shape) -> None:
        self._storage = storage
        self._area = area
        self._tile = tile
        self._block = block

    def __repr__(self) -> str:
        sizes = "×".join(map(str, self._area.sizes))
        return f"{type(self).__name__}({self._storage.tensor.name}: {sizes}, shape {self.shape})"

    @property
    def _steps(self) -> Shape:
        return tuple(t * b for t, b in zip(self._tile, self._block, strict=True))

    @property
    def shape(self) -> Shape:
        """Tiles or blocks along each remaining coordinate, partial ones included."""
        return tuple(-(-self._area.sizes[d] // self._steps[d]) for d in self._area.open_dims)

    @property
    def tile_shape(self) -> Shape:
        """Elements of a full tile along each tiled dimension."""
        return self._tile[self._storage.untiled :]

    @property
    def element_shape(self) -> Shape:
        """Elements selected along each dimension of the source."""
        return self._area.sizes

    @property
    def index_step_elements(self) -> Shape:
        """Elements between adjacent coordinates, for each remaining one."""
        return tuple(self._steps[d] for d in self._area.open_dims)

    @property
    def is_remainder(self) -> bool:
        """Whether the last tile or block is partial along any dimension."""
        return any(n % step for n, step in zip(self._area.sizes, self._steps, strict=True))

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._storage.tensor.dtype

    @property
    def buffer(self) -> Buffer:
        """The memory of the storage."""
        return self._storage.tensor.buffer

    @property
    def is_data_representable(self) -> bool:
        """Whether a single tensor of `element_shape` is exactly the selection."""
        if not self._storage.counts:
            return True
        spans = tuple(-(-n // t) for n, t in zip(self._area.sizes, self._tile, strict=True))
        return max(spans) == 1 or (len(spans) == 2 and spans[0] == 1)

    @property
    def data(self) -> NkiTensor:
        """The selection as one operand of an instruction. Raises `KernelError` if it is not one."""
        if not self.is_data_representable:
            raise KernelError(
                "bad-index",
                f"{self!r} is spread over several tiles of {self.buffer.value}, and is not a "
                "tensor",
                help="select tiles along the last coordinate only, grid[i, :], or a single tile, "
                "grid[i, j]",
            )
        starts, sizes, _ = self._area
        tensor, counts, _ = self._storage
        if not counts:
            return tensor[tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))]
        number = 0
        for start, step, count in zip(starts, self._tile, counts, strict=True):
            number = number * count + start // step
        capacity = prod(self._tile[1:])
        if len(sizes) == 2:
            return tensor[0 : sizes[0], number * capacity : number * capacity + sizes[1]]
        tile = tensor[:, number * capacity : (number + 1) * capacity].reshape(self._tile)
        return tile[tuple(slice(0, n) for n in sizes)]

    def __getitem__(self, key: Any) -> NkiGrid:
        coordinates = key if isinstance(key, tuple) else (key,)
        if len(coordinates) > len(self._area.open_dims):
            raise KernelError(
                "too-many-indices",
                f"{len(coordinates)} coordinates for a grid of shape {self.shape}",
                help="use .data for the elements, or nl.tiles(block) for the tiles of a block",
            )
        area = self._area
        for dim, item in zip(self._area.open_dims, coordinates, strict=False):
            area = self._selected(area, dim, plain(item))
        return type(self)(self._storage, area, self._tile, self._block)

    def _selected(self, area: Rectangle, dim: int, item: Any) -> Rectangle:
        step, size = self._steps[dim], area.sizes[dim]
        count = -(-size // step)
        first, last = _bounds(item, count, self.shape)
        open_dims = area.open_dims
        if not isinstance(item, slice):
            open_dims = tuple(d for d in open_dims if d != dim)
        starts = replaced(area.starts, dim, area.starts[dim] + first * step)
        sizes = replaced(area.sizes, dim, min(last * step, size) - first * step)
        return Rectangle(starts, sizes, open_dims)


@surface("__getitem__", public=True)
class NkiTileGrid(NkiGrid):
    """The result of `nl.tiles`."""

    __slots__ = ()


@surface("__getitem__", public=True)
class NkiBlockGrid(NkiGrid):
    """The result of `nl.blocks`."""

    __slots__ = ()

    @property
    def block_shape(self) -> Shape:
        """Tiles of a full block along each tiled dimension."""
        return self._block[self._storage.untiled :]


def _bounds(item: Any, count: int, shape: Shape) -> tuple[int, int]:
    """Return the first coordinate that an index selects, and the one after the last."""
    if isinstance(item, slice):
        if item.step in (None, 1):
            first, last, _ = slice(plain(item.start), plain(item.stop)).indices(count)
            if first < last:
                return first, last
        text = f"{item.start}:{item.stop}" + (f":{item.step}" if item.step else "")
        raise KernelError(
            "bad-index",
            f"`{text}` selects no adjacent coordinates of a grid of shape {shape}",
            help="select start:stop, with start before stop",
        )
    if not isinstance(item, int) or isinstance(item, bool):
        raise KernelError(
            "bad-index",
            f"a coordinate of a grid must be an int or a slice, not {brief(item)}",
            help="index the tensor itself with nl.ds if an index is known at run time only",
        )
    if not -count <= item < count:
        text = f"coordinate {item} is outside of 0 to {count - 1}; the grid has shape {shape}"
        help = f"loop over range({count}), which is that size of the grid's shape"
        raise KernelError("index-out-of-bounds", text, help=help)
    return item % count, item % count + 1


# Creation of grids


def tiles(source: Any, *, tile_shape: Any = None) -> NkiTileGrid:
    """Return a grid of tiles over a tensor, a grid, or a block."""
    storage, area, tile = _viewed("nl.tiles", source, tile_shape)
    return NkiTileGrid(storage, area, tile, (1,) * len(tile))


def blocks(source: Any, *, tile_shape: Any = None, block_shape: Any) -> NkiBlockGrid:
    """Return a grid of blocks of `block_shape` tiles over a tensor or a grid."""
    storage, area, tile = _viewed("nl.blocks", source, tile_shape)
    block = _block(block_shape, tile[storage.untiled :])
    return NkiBlockGrid(storage, area, tile, (1,) * storage.untiled + block)


def alloc_tiles(
    *,
    tile_shape: Any,
    element_shape: Any,
    buffer: Any,
    dtype: Any,
    address: Any = None,
    name: str = "",
) -> NkiTileGrid:
    """Return a grid of tiles over new, uninitialised storage."""
    storage, area, tile = _allocated(tile_shape, element_shape, buffer, dtype, address, name)
    return NkiTileGrid(storage, area, tile, (1,) * len(tile))


def alloc_blocks(
    *,
    tile_shape: Any,
    block_shape: Any,
    element_shape: Any,
    buffer: Any,
    dtype: Any,
    address: Any = None,
    name: str = "",
) -> NkiBlockGrid:
    """Return a grid of blocks over new, uninitialised storage."""
    block = _block(block_shape, _sizes(tile_shape, "tile_shape", 2))
    storage, area, tile = _allocated(tile_shape, element_shape, buffer, dtype, address, name)
    return NkiBlockGrid(storage, area, tile, (1,) * storage.untiled + block)


def _viewed(function: str, source: Any, tile_shape: Any) -> tuple[Storage, Rectangle, Shape]:
    if not isinstance(source, NkiTensor | NkiGrid):
        text = f"{function} takes a tensor or a grid, not {brief(source)}"
        raise KernelError("argument-kind", text, argument="source", position=0)
    if isinstance(source, NkiTensor):
        if tile_shape is None:
            text = f"{function} of a tensor needs tile_shape"
            raise KernelError("wrong-call", text, help="pass tile_shape=(128, 512), for example")
        tile = _sizes(tile_shape, "tile_shape", 2)
        untiled = _untiled(source.shape, tile, source.buffer)
        return Storage(source, (), untiled), _whole(source.shape), (1,) * untiled + tile
    wanted = source.tile_shape if tile_shape is None else _sizes(tile_shape, "tile_shape", 2)
    if wanted != source.tile_shape:
        raise KernelError(
            "bad-shape",
            f"tile_shape is {wanted}, but the tiles of the grid are {source.tile_shape}",
            help="remove tile_shape, or make the grid from the tensor",
            argument="tile_shape",
        )
    starts, sizes, _ = source._area
    return source._storage, Rectangle(starts, sizes, _whole(sizes).open_dims), source._tile


def _allocated(
    tile_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any, name: Any
) -> tuple[Storage, Rectangle, Shape]:
    tile = _sizes(tile_shape, "tile_shape", 2)
    sizes = _sizes(element_shape, "element_shape", 2)
    memory = as_buffer(buffer)
    untiled = _untiled(sizes, tile, memory)
    if not memory.on_chip:
        tensor = make_tensor(sizes, dtype, memory, name, address)
        return Storage(tensor, (), untiled), _whole(sizes), (1,) * untiled + tile
    counts = tuple(-(-n // t) for n, t in zip(sizes, tile, strict=True))
    shape = (tile[0], prod(counts) * prod(tile[1:]))
    tensor = make_tensor(shape, dtype, memory, name, address)
    return Storage(tensor, counts), _whole(sizes), tile


def _whole(sizes: Shape) -> Rectangle:
    return Rectangle((0,) * len(sizes), tuple(sizes), tuple(range(len(sizes))))


def _block(block_shape: Any, tile: Shape) -> Shape:
    block = _sizes(block_shape, "block_shape", 1)
    if len(block) == len(tile):
        return block
    raise KernelError(
        "bad-shape",
        f"block_shape has {len(block)} dimensions, tile_shape {len(tile)}",
        help="give the number of tiles of a block along each dimension of a tile",
        argument="block_shape",
    )


def _untiled(sizes: Shape, tile: Shape, memory: Buffer) -> int:
    """Return the number of leading dimensions that are not tiled, which must be 0 on chip."""
    count = len(sizes) - len(tile)
    if count == 0 or (count > 0 and not memory.on_chip):
        return count
    text = f"tile_shape has {len(tile)} dimensions, but the elements {len(sizes)}: {sizes}"
    raise KernelError(
        "bad-shape",
        text if count < 0 else f"{text}; in {memory.value} all dimensions are tiled",
        help="write one size for each dimension",
        argument="tile_shape",
    )


def _sizes(value: Any, name: str, min_count: int) -> Shape:
    """Check that `value` is a tuple of at least `min_count` positive ints, as documented."""
    sizes = tuple(plain(size) for size in value) if isinstance(value, tuple) else ()
    if len(sizes) >= min_count and all(type(size) is int and size > 0 for size in sizes):
        return sizes
    raise KernelError(
        "bad-shape",
        f"{name} must be a tuple of at least {min_count} positive ints, not {brief(value)}",
        argument=name,
    )
