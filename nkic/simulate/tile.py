"""A tile operand, decoded once at load: NumPy windows onto memory, ready to use.

Values are float32. A tile over float32 memory or a decoded region *is* an array of them; over
any other memory it is converted at each read and each write. Semantics ask for something to
`load` from and a `Sink` to write to, of a common shape, and never see the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, encode, round_to_grid
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.patterns import merged, repeats
from nkic.neff.records import PatternRecord
from nkic.simulate.memory import Memory

Array = NDArray[np.float32]
Load = Callable[[], Array]
Sizes = tuple[int, ...]


class Sink(NamedTuple):
    """Where to write: compute into `out`, then call `store`.

    `direct`: `out` is memory itself, and `store` does nothing.
    """

    out: Array
    store: Callable[[], Any]
    direct: bool


class Tile:
    """An access pattern over the memory it addresses.

    `partitions` is 1 for HBM. `sizes` are the free dimensions; all of HBM's.
    """

    __slots__ = (
        *("dtype", "first", "free", "grid", "home", "memory", "on_chip", "partitions"),
        *("pattern", "precise", "sizes", "window"),
    )

    def __init__(self, memory: Memory, pattern: PatternRecord, precise: bool = True) -> None:
        self.memory = memory
        self.pattern = pattern
        self.precise = precise
        self.dtype = pattern.dtype
        self.home = memory.homes[pattern.tensor]
        self.grid = self.home.region.grid
        self.on_chip = self.home.on_chip
        self.first = self.home.partition + pattern.start  # absolute partition
        self.window = memory.window(pattern)
        self.partitions, *sizes = self.window.shape
        self.sizes: Sizes = tuple(sizes)
        self.free = prod(sizes)

    @property
    def is_float32(self) -> bool:
        """Reads and writes need no conversion."""
        return self.grid is not None or self.dtype is FLOAT32

    @property
    def keeps_float32(self) -> bool:
        """Any float32 can be stored as it is."""
        return self.dtype is FLOAT32 or (self.grid is not None and not self.precise)

    def shaped(self, sizes: Sizes) -> NDArray[np.generic]:
        """The window with its free dimensions split into `sizes`, which refine them."""
        return self.window if sizes == self.sizes else self.window.reshape(self.partitions, *sizes)

    def seen_as(self, sizes: Sizes) -> Callable[[], NDArray[Any]]:
        """Reads memory as it is, (partitions, *sizes), copying where `sizes` refine nothing."""
        if refined((self.sizes, sizes)) == sizes:
            return partial(_same, self.shaped(sizes))
        return partial(np.reshape, self.window, (self.partitions, *sizes))

    def load(self, sizes: Sizes | None = None) -> Load:
        """Reads as float32 in the shape (partitions, *sizes); None: (partitions, free).

        The array may be memory itself, or one that is overwritten at the next call.
        """
        window = self._flat() if sizes is None else self.shaped(sizes)
        shape = (self.partitions, self.free) if sizes is None else window.shape
        if self.is_float32 and window.shape == shape:
            return partial(_same, window)
        found = self.memory.scratch.floats(shape)
        inner = found.reshape(window.shape)
        if self.is_float32:
            return partial(_copied, window, inner, found)
        return partial(_decoded, self.dtype, window, inner, found)

    def _flat(self) -> NDArray[np.generic]:
        """The window as (partitions, free), if its dimensions merge; else as it is."""
        if len(merged(self.pattern.dims)) > 1:
            return self.window
        return self.shaped((self.free,))

    def sink(self, sizes: Sizes | None = None, apart: bool = False) -> Sink:
        """Writes float32 in the shape (partitions, *sizes); None: (partitions, free).

        `apart`: nothing is written to memory before `store`.
        """
        window = self._flat() if sizes is None else self.shaped(sizes)
        shape = (self.partitions, self.free) if sizes is None else window.shape
        direct = self.keeps_float32 and window.shape == shape
        if direct and not apart and not _repeats(self.pattern.dims):
            return Sink(window, _nothing, True)  # type: ignore[arg-type]
        out = self.memory.scratch.floats(shape)
        return Sink(out, partial(self._put, window, out.reshape(window.shape)), False)

    def bit_sink(self, sizes: Sizes) -> Sink:
        """Writes elements as memory holds them, (partitions, *sizes); `sizes` refine its own."""
        return Sink(self.shaped(sizes), _nothing, True)  # type: ignore[arg-type]

    def _put(self, window: NDArray[Any], values: Array) -> None:
        """Stores float32, rounded to the element type."""
        if self.keeps_float32:
            np.copyto(window, values)
        elif _repeats(self.pattern.dims):  # rounding may write an element more than once
            rounded = round_to_grid(values, self.dtype, np.empty_like(values))
            np.copyto(window, rounded if self.grid else encode(rounded, self.dtype))
        elif self.grid is not None:
            round_to_grid(values, self.dtype, window)
        else:
            encode(values, self.dtype, window)

    def put(self, values: Array) -> None:
        """Stores float32 of any shape, rounded to the element type."""
        self._put(self.window, values.reshape(self.window.shape))

    def bits(self) -> NDArray[np.generic]:
        """The elements in the storage type, (partitions, *sizes); it may be memory itself."""
        if self.grid is None:
            return self.window
        return encode(
            np.ascontiguousarray(self.window, np.float32), self.grid, on_grid=self.precise
        )

    def put_bits(self, bits: NDArray[np.generic]) -> None:
        """Stores elements of the storage type."""
        if self.grid is None:
            np.copyto(self.window, bits.reshape(self.window.shape))
        else:
            np.copyto(self.window, decode(bits, self.grid).reshape(self.window.shape))

    def meets(self, other: Tile) -> bool:
        """May share bytes with `other`."""
        if self.home.region is not other.home.region:
            return False
        if self.on_chip and not _cross(self._rows(), other._rows()):
            return False
        return _cross(self._bytes(), other._bytes())

    def _rows(self) -> tuple[int, int]:
        return self.first, self.first + self.partitions

    def _bytes(self) -> tuple[int, int]:
        low, high = self.pattern.extent()
        return self.home.byte + low, self.home.byte + high

    def straddles(self, others: Iterable[Tile]) -> bool:
        """May share bytes with one of `others` that is not the very same tile."""
        for other in others:
            if other is not self and self.meets(other) and other.pattern != self.pattern:
                return True
        return False


_repeats = lru_cache(maxsize=4096)(repeats)


def _same(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _copied(window: NDArray[Any], inner: Array, found: Array) -> Array:
    """`found`, after filling it from memory through `inner`, a view of it."""
    np.copyto(inner, window)
    return found


def _decoded(dtype: DType, window: NDArray[Any], inner: Array, found: Array) -> Array:
    decode(window, dtype, inner)
    return found


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _nothing() -> None:
    """What is stored already."""


@lru_cache(maxsize=4096)
def refined(shapes: tuple[Sizes, ...]) -> Sizes | None:
    """The fewest sizes that refine all `shapes`, which have the same product; None if none do.

    An array of any of the shapes can be seen in these sizes without copying it. Only the
    dimension boundaries matter: their union works if each divides the next.
    """
    ends = sorted({end for sizes in shapes for end in _boundaries(sizes)}, reverse=True)
    if any(outer % inner for outer, inner in itertools.pairwise(ends)):
        return None
    return tuple(outer // inner for outer, inner in itertools.pairwise([*ends, 1])) or (1,)


def _boundaries(sizes: Sizes) -> list[int]:
    """Elements inside each dimension boundary, innermost last: (4, 6) gives 24, 6."""
    ends = [prod(sizes[i:]) for i in range(len(sizes))]
    return [end for end in ends if end > 1]
