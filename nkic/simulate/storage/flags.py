"""The flags of one tensor's initialised bytes, per block that no access splits."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np
from numpy.typing import NDArray

from nkic.neff.records import PatternRecord
from nkic.simulate.storage.tensor_usage import TensorUse, flags_of

Check = Callable[[], bool]
Mask = NDArray[np.bool_]


class Flags:
    """The flags of one tensor: rows of partitions, columns of bytes.

    `only` reads the flag of a tensor with a single one. `parts` refines blocks that are partly
    initialised: a flag for every partition and every `grain` bytes, which no element splits.
    """

    __slots__ = (*("array", "columns", "grain", "only", "parts", "rows", "shape"),)

    def __init__(self, use: TensorUse, partitions: int, pitch: int) -> None:
        self.rows = max(1, use.rows)  # partitions per flag
        self.columns = max(1, use.columns)  # bytes per flag
        self.grain = gcd(self.columns, *(dtype.size for dtype in use.types))
        self.shape = (max(1, partitions), max(1, pitch))
        self.parts: Mask | None = None
        shape = (-(-self.shape[0] // self.rows), -(-self.shape[1] // self.columns))
        self.array: Mask = np.zeros(shape, np.bool_)
        self.only: Check | None = self.array.item if self.array.size == 1 else None

    def window(self, pattern: PatternRecord, on_chip: bool) -> Mask:
        """Return the flags of an access."""
        size, unit = pattern.dtype.size, self.columns
        shape, strides = flags_of(pattern.dims, size, unit)
        first = pattern.offset * size // unit
        if on_chip:
            row = self.array.strides[0]
            shape = (max(1, pattern.partitions // self.rows), *shape)
            strides = (row, *strides)
            first += pattern.start // self.rows * row
        return np.ndarray(shape, np.bool_, self.array, first, strides)

    def elements(self, pattern: PatternRecord, on_chip: bool) -> Mask:
        """Return which elements of an access are initialised, as a flat array."""
        blocks = self.window(pattern, on_chip)
        rows = blocks.repeat(self.rows, axis=0) if on_chip else blocks
        mask = _regrouped(rows, self.columns, pattern.dtype.size)
        if self.parts is not None:
            mask |= self._parts(self.parts, pattern, on_chip).all(axis=-1).ravel()
        return mask

    def whole(self, size: int) -> Mask:
        """Return which elements, of `size` bytes, of a whole HBM tensor are initialised.

        Bytes that no access touches may end within a block, so no access pattern describes the
        whole.
        """
        total = self.shape[1]
        flags: Mask = self.array.ravel().repeat(self.columns)[:total]
        if self.parts is not None:
            np.logical_or(flags, self.parts.ravel().repeat(self.grain)[:total], out=flags)
        written: Mask = np.logical_and.reduce(flags.reshape(-1, size), axis=1)
        return written

    def set_parts(self, pattern: PatternRecord, on_chip: bool, mask: Mask) -> None:
        """Mark the elements of `mask` initialised, in blocks whose other elements are not."""
        if self.parts is None:
            shape = (self.shape[0], -(-self.shape[1] // self.grain))
            self.parts = np.zeros(shape, np.bool_)
        parts = self._parts(self.parts, pattern, on_chip)
        parts[...] = mask.reshape(*parts.shape[:-1], 1)
        whole: Mask = mask
        if on_chip:
            whole = np.logical_and.reduce(mask.reshape(-1, self.rows, mask.shape[1]), axis=1)
        blocks = self.window(pattern, on_chip)
        blocks &= _regrouped(whole, pattern.dtype.size, self.columns).reshape(blocks.shape)

    def _parts(self, parts: Mask, pattern: PatternRecord, on_chip: bool) -> Mask:
        """Return the flags in `parts` of an access's elements, with an element's flags last."""
        scale, pairs = pattern.dtype.size // self.grain, pattern.dims
        shape = (*(num for _, num in pairs), scale)
        strides = (*(step * scale for step, _ in pairs), 1)
        first = pattern.offset * scale
        if on_chip:
            row = parts.strides[0]
            shape, strides = (pattern.partitions, *shape), (row, *strides)
            first += pattern.start * row
        return np.ndarray(shape, np.bool_, parts, first, strides)


def _regrouped(flags: Mask, size: int, wanted: int) -> Mask:
    """Convert flags of blocks of `size` bytes to flags of blocks of `wanted` bytes."""
    common = gcd(size, wanted)
    pieces = flags.ravel().repeat(size // common).reshape(-1, wanted // common)
    regrouped: Mask = np.logical_and.reduce(pieces, axis=1)
    return regrouped
