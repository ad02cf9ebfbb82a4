"""Operands at run-time addresses, as one window over all their possible addresses.

The outermost dimension of the window runs over the offsets that stay inside the tensor. The
instruction itself works on a staged copy (`Memory.stage`), which is gathered from the window before
and scattered back after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from nkic.machine.indirection import group
from nkic.machine.operands import Row
from nkic.neff.records import PatternRecord
from nkic.simulate.storage.memory import Memory
from nkic.simulate.tile import Tile

Indices = NDArray[np.int64]
MAX_OFFSETS = 1 << 20  # limit for a stride of 0: a file may claim more offsets than NumPy can count


class IndirectOperand(NamedTuple):
    """One operand: `rows` is its window, `copy` the staged tile that the instruction uses."""

    pattern: PatternRecord
    indices: Callable[[], Indices]
    rows: NDArray[Any]
    copy: Tile
    reads: bool
    writes: bool

    @property
    def size(self) -> int:
        """The number of offsets, from 0 on, that stay inside the tensor."""
        return len(self.rows)

    def good(self, indices: Indices) -> NDArray[np.bool_]:
        """Return which offsets stay inside the tensor."""
        return (indices >= 0) & (indices < self.size)

    def gather(self, indices: Indices) -> None:
        """Fill the copy from memory. Out-of-bounds offsets are clamped."""
        inside = indices.clip(0, self.size - 1)
        if self.pattern.kind == "scalar":
            np.copyto(self.copy.window, self.rows[inside[0]])
        elif self.pattern.kind == "vector":
            self.copy.window[0] = self.rows[:, 0][inside]
        else:
            self._flat()[...] = self.rows[:, :, 0].T[:, inside]

    def scatter(self, indices: Indices, keep: NDArray[np.bool_]) -> None:
        """Write the copy to memory, for the rows in `keep`; among equal offsets, the last wins."""
        if self.pattern.kind == "scalar":
            np.copyto(self.rows[indices[0]], self.copy.window)
        elif self.pattern.kind == "vector":
            self.rows[:, 0][indices[keep]] = self.copy.window[0][keep]
        else:
            self.rows[:, :, 0].T[:, indices] = self._flat()

    def repeated(self, indices: Indices, keep: NDArray[np.bool_]) -> list[int]:
        """Return the rows in `keep` whose offset an earlier one has, with other elements.

        If rows are added to what is there, equal ones count too.
        """
        if self.pattern.kind == "scalar":
            return []
        places = indices.tolist()
        if len(set(places)) == len(places):
            return []
        is_vector = self.pattern.kind == "vector"
        rows = self.copy.window[0] if is_vector else self._flat().T
        kept = np.broadcast_to(keep, len(places)) if is_vector else np.ones(len(places), np.bool_)
        first: dict[int, int] = {}
        found = []
        for row, place in enumerate(places):
            earlier = first.setdefault(place, row) if kept[row] else row
            if earlier != row and (self.reads or rows[row].tobytes() != rows[earlier].tobytes()):
                found.append(row)
        return found

    def _flat(self) -> NDArray[Any]:
        return self.copy.window.reshape(self.copy.partitions, -1)


def offsets_inside(pattern: PatternRecord, pitch: int) -> int:
    """Return how many offsets, from 0 on, keep `pattern` within `pitch` bytes and its limit."""
    _, _, stride, limit, _ = pattern.dynamic or ("", 0, 0, 1, 0)
    low, high = pattern.extent()
    step = stride * pattern.dtype.size
    if step > 0:
        return min(limit, (pitch - high) // step + 1)
    return min(limit, low // -step + 1 if step < 0 else MAX_OFFSETS)


def window_of(memory: Memory, pattern: PatternRecord) -> NDArray[Any]:
    """Return all possible windows of `pattern`, of shape (offsets, *window)."""
    window = memory.window(pattern.standing)
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    count = offsets_inside(pattern, memory.homes[pattern.tensor].pitch)
    shape, strides = (count, *window.shape), (stride * window.itemsize, *window.strides)
    return as_strided(window, shape, strides, writeable=window.flags.writeable)


def offsets_of(tile: Tile, pattern: PatternRecord, row: Row) -> Callable[[], Indices]:
    """Return a function that reads the offsets that a tile holds, column by column."""
    count = {"scalar": 1, "vector": pattern.dims[0][1] if pattern.dims else 1}.get(
        pattern.kind, pattern.elements // max(1, pattern.partitions)
    )
    lanes = min(tile.partitions, group(row)) if pattern.kind == "columns" else tile.partitions

    def read() -> Indices:
        values = tile.bits().reshape(tile.partitions, -1)[:lanes].T.reshape(-1)[:count]
        return values.astype(np.int64)

    return read


def flag_windows(shadow: Any, pattern: PatternRecord, count: int) -> NDArray[Any]:
    """Return the flags of all possible windows, in the layout of `window_of`."""
    window = shadow.window(pattern.standing)
    flags = shadow.flags[pattern.tensor]
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    step = stride * pattern.dtype.size // flags.columns * window.itemsize
    return as_strided(window, (count, *window.shape), (step, *window.strides))
