"""The elements of all tensors of a program, in records that patterns address like memory."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from nkic.machine.dtypes import DType
from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.field.elements import Elements, Size
from nkic.simulate.field.modular import LEVELS

Records = NDArray[np.void]
RECORD = np.dtype(
    [("residues", np.int64, LEVELS), ("value", np.float64), ("origin", "i4"), ("loose", "i4")]
)


class Store:
    """Records by tensor: (partitions, elements), HBM (1, elements). Zeros until written."""

    def __init__(self, executable: Executable) -> None:
        self._tensors = executable.tensors
        self._records: dict[int, Records] = {}
        self._sizes: dict[int, Size] = {}

    def whole(self, tensor: int) -> Records:
        """Return the records of a tensor."""
        if tensor not in self._records:
            record = self._tensors[tensor]
            rows = record.shape[0] if record.buffer.on_chip else 1
            self._records[tensor] = np.zeros((rows, prod(record.shape) // rows), RECORD)
        return self._records[tensor]

    def read(self, pattern: PatternRecord) -> Elements | None:
        """Return the elements of an access, (partitions, elements); None of another type."""
        window = self.window(pattern)
        if window is None:
            return None
        return elements_of(window.reshape(self.shape(pattern)), self.size(pattern.tensor))

    def is_on_chip(self, tensor: int) -> bool:
        return self._tensors[tensor].buffer.on_chip

    def size(self, tensor: int) -> Size:
        return self._sizes.get(tensor, Size())

    def write(self, pattern: PatternRecord, elements: Elements) -> None:
        """Set the elements; all of a tensor are undecided after a write of other bits."""
        window = self.window(pattern)
        self.grow(pattern.tensor, elements.size)
        if window is not None:
            window[...] = records_of(elements).reshape(window.shape)
            return
        whole = self.whole(pattern.tensor)
        whole["value"], whole["origin"] = np.nan, elements.origin.max(initial=0)

    def grow(self, tensor: int, size: Size) -> None:
        """Note the size of elements that a tensor gets."""
        self._sizes[tensor] = self.size(tensor).joined(size)

    def shape(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return the partitions (1 in HBM), and the elements of each."""
        rows = pattern.partitions if self._tensors[pattern.tensor].buffer.on_chip else 1
        return rows, prod(num for _, num in pattern.dims)

    def places(self, pattern: PatternRecord, count: int) -> Records | None:
        """Return a view of all places of a pattern with run-time offsets: (offsets, *shape)."""
        window = self.window(pattern.standing)
        if window is None or pattern.dynamic is None:
            return None
        stride = pattern.dynamic.stride * RECORD.itemsize
        return as_strided(window, (count, *window.shape), (stride, *window.strides))

    def window(self, pattern: PatternRecord) -> Records | None:
        """Return a view if the access is to the tensor's own elements at a fixed address."""
        tensor = self._tensors[pattern.tensor]
        if pattern.dynamic is not None or not _same(pattern.dtype, tensor.dtype):
            return None
        whole = self.whole(pattern.tensor)
        rows, _ = self.shape(pattern)
        shape = (rows, *(num for _, num in pattern.dims))
        strides = (whole.strides[0], *(step * RECORD.itemsize for step, _ in pattern.dims))
        first = pattern.start * whole.strides[0] + pattern.offset * RECORD.itemsize
        return np.ndarray(shape, RECORD, whole, first, strides)


def _same(one: DType, other: DType) -> bool:
    """Return whether both types read the same numbers from the same bits, but for rounding."""
    return one is other or (one.size == other.size == 4 and one.is_float and other.is_float)


def elements_of(records: Any, size: Size) -> Elements:
    """Return records as elements."""
    residues = np.moveaxis(records["residues"], -1, 0).copy()
    parts = [records[name].copy() for name in ("value", "origin", "loose")]
    return Elements(residues, parts[0], parts[1], parts[2], size)


def records_of(elements: Elements) -> Records:
    """Return elements as records."""
    records = np.empty(elements.value.shape, RECORD)
    records["residues"] = np.moveaxis(elements.residues, 0, -1)
    records["value"], records["origin"], records["loose"] = elements[1:4]
    return records
