"""A tile operand, decoded once at load: NumPy windows onto memory, ready to use.

Values are float32. A tile over float32 memory or a decoded region *is* an array of them; over
any other memory it is converted at each read and each write. Semantics ask for `Source` (what
to read) and `Sink` (where to write) of a common shape and never see the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, encode, round_to_grid, storage
from nkic.machine.dtypes import DTYPES
from nkic.neff.records import PatternRecord
from nkic.simulate.memory import Memory

Array = NDArray[np.float32]
Result = TypeVar("Result")
FLOAT32 = DTYPES["float32"]
Sizes = tuple[int, ...]


class Tile:
    """An access pattern over the memory it addresses.

    `partitions` is 1 for HBM. `sizes` are the free dimensions; all of HBM's.
    """

    def __init__(self, memory: Memory, pattern: PatternRecord, precise: bool = True) -> None:
        self.memory = memory
        self.pattern = pattern
        self.dtype = pattern.dtype
        self.on_chip = memory.executable.tensors[pattern.tensor].buffer.on_chip
        self.partitions = pattern.partitions if self.on_chip else 1
        self.sizes: Sizes = tuple(num for _, num in pattern.dims)
        self.free = prod(self.sizes)
        self.grid = memory.homes[pattern.tensor].region.grid
        self.precise = precise

    @property
    def is_float32(self) -> bool:
        """Reads and writes need no conversion."""
        return self.grid is not None or self.dtype is FLOAT32

    def window(self, sizes: Sizes | None = None) -> NDArray[np.generic]:
        """Memory as it is: float32 if `is_float32`, else in the storage type. With `sizes`,
        the same elements with their free dimensions split so (see `common_sizes`)."""
        dims = self.pattern.dims if sizes is None else _split(self.pattern.dims, sizes)
        shape, steps = tuple(n for _, n in dims), tuple(s for s, _ in dims)
        kind = np.dtype(np.float32) if self.is_float32 else storage(self.dtype)
        return self.memory.view(self.pattern, shape, steps, kind)

    def source(self, sizes: Sizes | None = None) -> Source:
        """Reads as float32 in the shape (partitions, *sizes); None: (partitions, free)."""
        flat = sizes is None and len(self.sizes) > 1
        return Source(self, self.window(None if flat else sizes), flat)

    def sink(self, sizes: Sizes | None = None) -> Sink:
        """Writes float32 in the shape (partitions, *sizes); None: (partitions, free)."""
        flat = sizes is None and len(self.sizes) > 1
        return Sink(self, self.window(None if flat else sizes), flat)

    def bits(self) -> NDArray[np.generic]:
        """A copy of the elements in the storage type, (partitions, *sizes)."""
        window = self.window()
        if self.grid is None:
            return np.array(window)
        return encode(np.ascontiguousarray(window, np.float32), self.grid)

    def element(self, value: float) -> NDArray[np.generic]:
        """One number in the storage type; integers are exact and wrap to the type's width."""
        if self.dtype.is_integer and float(value).is_integer():
            wrapped = int(value) & ((1 << 8 * self.dtype.size) - 1)
            return np.array(wrapped, f"u{self.dtype.size}").view(storage(self.dtype))
        return encode(np.array(value, np.float32), self.dtype)

    @property
    def first_partition(self) -> int:
        """The absolute partition at which it begins."""
        return self.memory.homes[self.pattern.tensor].partition + self.pattern.start

    def put_bits(self, bits: NDArray[np.generic]) -> None:
        """Stores elements of the storage type."""
        window = self.window()
        if self.grid is None:
            window[...] = bits.reshape(window.shape)
        else:
            window[...] = decode(bits, self.grid).reshape(window.shape)


class Source:
    """Where to read: `array` holds the values if they need neither conversion nor copy."""

    __slots__ = ("array", "load")

    def __init__(self, tile: Tile, window: NDArray[np.generic], flat: bool) -> None:
        self.array: Array | None = None
        self.load: Callable[[], Array]
        shape = (window.shape[0], tile.free) if flat else window.shape
        scratch: Array = np.empty(shape, np.float32)
        inner: Array = scratch.reshape(window.shape)
        dtype = tile.dtype
        if not tile.is_float32:
            self.load = lambda: _after(decode(window, dtype, inner), scratch)
        elif flat:
            self.load = lambda: _copied(window, inner, scratch)
        else:
            array: Array = window  # type: ignore[assignment]
            self.array = array
            self.load = lambda: array


class Sink:
    """Where to write: compute into `out`, then call `store()`.

    `out` is memory itself when that takes float32 as it comes; `store` then does nothing.
    """

    __slots__ = ("direct", "out", "store")

    def __init__(self, tile: Tile, window: NDArray[np.generic], flat: bool) -> None:
        exact = tile.dtype is FLOAT32 or (tile.is_float32 and not tile.precise)
        self.direct = exact and not flat
        self.out: Array
        self.store: Callable[[], None]
        if self.direct:
            self.out = window  # type: ignore[assignment]
            self.store = _nothing
            return
        shape = (window.shape[0], tile.free) if flat else window.shape
        self.out = np.empty(shape, np.float32)
        inner: Array = self.out.reshape(window.shape)
        dtype = tile.dtype
        floats: Array = window  # type: ignore[assignment]
        if exact:
            self.store = lambda: np.copyto(floats, inner)
        elif tile.grid is not None:
            self.store = lambda: _after(round_to_grid(inner, dtype, floats))
        else:
            self.store = lambda: _after(encode(inner, dtype, window))


def _copied(window: NDArray[np.generic], inner: Array, scratch: Array) -> Array:
    """`scratch`, after filling it from `window` through `inner`, a view of it."""
    np.copyto(inner, window)
    return scratch


def _nothing() -> None:
    """What is stored already."""


def _after(value: object, result: Result = None) -> Result:  # type: ignore[assignment]
    """`result`, once `value` has been computed."""
    return result


def common_sizes(tiles: Sequence[Tile]) -> Sizes | None:
    """Free dimensions into which all `tiles` can be split without copying, or None.

    Only the dimension boundaries of each tile matter: the union of all of them works if each
    divides the next.
    """
    ends = sorted({end for tile in tiles for end in _boundaries(tile.sizes)}, reverse=True)
    sizes = []
    for outer, inner in itertools.pairwise(ends):
        if outer % inner:
            return None
        sizes.append(outer // inner)
    return (*sizes, ends[-1]) if ends else (1,)


def _boundaries(sizes: Sizes) -> list[int]:
    """Elements inside each dimension boundary, innermost last: (4, 6) gives 24, 6."""
    found, inner = [], 1
    for size in reversed(sizes):
        inner *= size
        found.append(inner)
    return [f for f in found if f > 1] or [1]


def _split(dims: tuple[tuple[int, int], ...], sizes: Sizes) -> list[tuple[int, int]]:
    """`dims` cut into dimensions of `sizes` (outermost first), which refine them."""
    result: list[tuple[int, int]] = []
    rest = [(step, num) for step, num in dims if num > 1]
    step, left = rest.pop() if rest else (1, 1)
    for size in reversed(sizes):
        if left == 1 and rest:
            step, left = rest.pop()
        if left % size:
            raise ValueError(f"{sizes} does not refine {dims}")
        result.append((step, size))
        step, left = step * size, left // size
    return result[::-1]
