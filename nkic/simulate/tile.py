"""A tile operand, prepared once for all instructions that differ in their addresses alone.

Values are float32. A tile over float32 memory or a decoded region *is* an array of them; over any
other memory it is converted at each read and each write. Semantics use a function to `load` from
and a `Sink` to write to, of a common shape, and do not depend on the difference. The memory is
bound last: `window` is set before each execution, and does not exist earlier.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import PatternRecord
from nkic.machine.codecs import LOST, decode, encode, round_to_grid
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.patterns import merged, repeats
from nkic.simulate.lost import Notes, is_rounded
from nkic.simulate.memory import Memory

Array = NDArray[np.float32]
Load = Callable[[], Array]
View = Callable[[], NDArray[Any]]
Sizes = tuple[int, ...]


class Sink(NamedTuple):
    """A destination: compute into `out()`, then call `store`.

    If `direct`, `out()` is memory itself, and `store` does nothing.
    """

    out: Load
    store: Callable[[], Any]
    direct: bool


class Tile:
    """An access pattern over the memory it addresses.

    `partitions` is 1 for HBM. `sizes` are the free dimensions, or all dimensions for HBM. `pattern`
    is that of the first instruction; those of the others differ in their addresses alone.
    """

    __slots__ = (
        *("dtype", "first", "form", "free", "grid", "memory", "notes", "on_chip", "partitions"),
        *("pattern", "precise", "shape", "sizes", "window"),
    )
    window: NDArray[Any]

    def __init__(self, memory: Memory, pattern: PatternRecord, precise: bool = True) -> None:
        self.memory, self.pattern, self.precise = memory, pattern, precise
        self.notes: Notes | None = None  # files remarks on numbers that are lost
        self.form = memory.form(pattern)
        self.dtype = pattern.dtype
        self.grid = self.form.kind.grid
        self.on_chip = self.form.kind.on_chip
        self.first = self.form.first  # absolute partition
        self.shape = self.form.shape
        self.partitions, *sizes = self.shape
        self.sizes: Sizes = tuple(sizes)
        self.free = prod(sizes)

    def bound(self) -> Tile:
        """Bind the tile to the memory of its own pattern, and return it."""
        self.window = self.memory.window(self.pattern, self.form)
        return self

    @property
    def is_float32(self) -> bool:
        """Whether reads and writes need no conversion."""
        return self.grid is not None or self.dtype is FLOAT32

    @property
    def keeps_float32(self) -> bool:
        """Whether any float32 value can be stored unchanged."""
        return self.dtype is FLOAT32 or (self.grid is not None and not self.precise)

    def shape_in(self, sizes: Sizes | None) -> tuple[int, ...]:
        """Return the shape that `load` and `sink` use for these sizes."""
        return (self.partitions, *((self.free,) if sizes is None else sizes))

    def seen_as(self, sizes: Sizes) -> View:
        """Return a function that returns raw memory in the shape (partitions, *sizes).

        This is a view if `sizes` refine the tile's own, else a copy, which is read-only.
        """
        if sizes == self.sizes:
            return lambda: self.window
        shape = (self.partitions, *sizes)
        return lambda: self.window.reshape(shape)

    def load(self, sizes: Sizes | None = None) -> Load:
        """Return a function that reads float32 in the shape (partitions, *sizes).

        For None, the shape is (partitions, free). The array may be memory itself, or one that the
        next call overwrites.
        """
        view_sizes = self._flat() if sizes is None else sizes
        result_sizes = (self.free,) if sizes is None else sizes
        view = self.seen_as(view_sizes)
        if self.is_float32 and view_sizes == result_sizes:
            return view
        result = self.memory.scratch.floats((self.partitions, *result_sizes))
        inner = result.reshape(self.partitions, *view_sizes)
        if self.is_float32:
            return partial(_copied, view, inner, result)
        if self.notes is not None and is_rounded(self.dtype):
            return partial(_noted, self.notes, self.dtype, view, inner, result)
        return partial(_decoded, self.dtype, view, inner, result)

    def _flat(self) -> Sizes:
        """Return the free elements as one dimension if they can be merged, else as they are."""
        return (self.free,) if len(merged(self.pattern.dims)) <= 1 else self.sizes

    def sink(self, sizes: Sizes | None = None, buffered: bool = False) -> Sink:
        """Return a sink for float32 in the shape (partitions, *sizes); None: (partitions, free).

        If `buffered`, nothing is written to memory before `store`.
        """
        view_sizes = self._flat() if sizes is None else sizes
        result_sizes = (self.free,) if sizes is None else sizes
        view = self.seen_as(view_sizes)
        direct = self.keeps_float32 and view_sizes == result_sizes
        if direct and not buffered and not _repeats(self.pattern.dims):
            return Sink(view, _nothing, True)
        out = self.memory.scratch.floats((self.partitions, *result_sizes))
        inner = out.reshape(self.partitions, *view_sizes)
        return Sink(lambda: out, lambda: self._put(view(), inner), False)

    def bit_sink(self, sizes: Sizes) -> Sink:
        return Sink(self.seen_as(sizes), _nothing, True)

    def _put(self, window: NDArray[Any], values: Array) -> None:
        """Store float32, rounded to the element type."""
        if self.keeps_float32:
            np.copyto(window, values)
            return
        LOST.stored = False
        if self.notes is not None and self.notes.whole:
            self.notes.computed(values, self.dtype)
        if _repeats(self.pattern.dims):  # rounding may write an element more than once
            rounded = round_to_grid(values, self.dtype, np.empty_like(values))
            np.copyto(window, rounded if self.grid else encode(rounded, self.dtype))
        elif self.grid is not None:
            round_to_grid(values, self.dtype, window)
        else:
            encode(values, self.dtype, window)
        if LOST.stored and self.notes is not None:
            self.notes.stored(values, self.dtype)

    def put(self, values: Array) -> None:
        self._put(self.window, values.reshape(self.shape))

    def bits(self) -> NDArray[np.generic]:
        """Return the elements in the storage type, (partitions, *sizes); may be memory itself."""
        if self.grid is None:
            return self.window
        return encode(
            np.ascontiguousarray(self.window, np.float32), self.grid, on_grid=self.precise
        )

    def put_bits(self, bits: NDArray[np.generic]) -> None:
        if self.grid is None:
            np.copyto(self.window, bits.reshape(self.shape))
        else:
            np.copyto(self.window, decode(bits, self.grid).reshape(self.shape))

    def overlaps(self, other: Tile) -> bool:
        return self.memory.may_overlap(self.pattern, other.pattern)

    def straddles(self, others: Iterable[Tile]) -> bool:
        """Return whether the tile may partially overlap one of `others`."""
        for other in others:
            if other is not self and self.overlaps(other) and other.pattern != self.pattern:
                return True
        return False


_repeats = lru_cache(maxsize=4096)(repeats)


def _noted(notes: Notes, dtype: DType, view: View, inner: Array, result: Array) -> Array:
    """As `_decoded`, with a look for integers that float32 rounds."""
    raw = view()
    decode(raw, dtype, inner)
    notes.read(raw, inner)
    return result


def _copied(view: View, inner: Array, result: Array) -> Array:
    """Fill `result` from memory through `inner`, a view of it, and return it."""
    np.copyto(inner, view())
    return result


def _decoded(dtype: DType, view: View, inner: Array, result: Array) -> Array:
    decode(view(), dtype, inner)
    return result


def _nothing() -> None:
    """Do nothing: the values are already stored."""


@lru_cache(maxsize=4096)
def refined(shapes: tuple[Sizes, ...]) -> Sizes | None:
    """Return the fewest sizes that refine all `shapes`, of the same product; None if none do.

    An array of any of the shapes can be viewed in these sizes without a copy. Only the dimension
    boundaries matter: their union works if each divides the next.
    """
    ends = sorted({end for sizes in shapes for end in _boundaries(sizes)}, reverse=True)
    if any(outer % inner for outer, inner in itertools.pairwise(ends)):
        return None
    return tuple(outer // inner for outer, inner in itertools.pairwise([*ends, 1])) or (1,)


def _boundaries(sizes: Sizes) -> list[int]:
    """Return the number of elements inside each dimension boundary: (4, 6) gives 24, 6."""
    ends = [prod(sizes[i:]) for i in range(len(sizes))]
    return [end for end in ends if end > 1]
