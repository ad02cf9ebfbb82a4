"""What a run may know of elements beside their values: a record for each, as instructions see it.

`bounds` keeps errors there, and `field` residues.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.dtypes import DType
from nkic.simulate.memory import Memory

Records = NDArray[Any]


class RecordStore:
    """Records by tensor: (partitions, elements), HBM (1, elements). Zeros until written."""

    def __init__(self, executable: Executable, dtype: DTypeLike) -> None:
        self._tensors = executable.tensors
        self._dtype = np.dtype(dtype)
        self._wholes: dict[int, Records] = {}

    def whole(self, tensor: int) -> Records:
        """Return the records of a tensor."""
        if tensor not in self._wholes:
            record = self._tensors[tensor]
            rows = record.shape[0] if record.buffer.on_chip else 1
            self._wholes[tensor] = np.zeros((rows, prod(record.shape) // rows), self._dtype)
        return self._wholes[tensor]

    def shape(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return the partitions (1 in HBM), and the elements of each."""
        rows = pattern.partitions if self._tensors[pattern.tensor].buffer.on_chip else 1
        return rows, prod(num for _, num in pattern.dims)

    def window(self, pattern: PatternRecord) -> Records | None:
        """Return a view if the access is to the tensor's own elements at a fixed address."""
        own = self._tensors[pattern.tensor].dtype
        if pattern.dynamic is not None or not self.reads_same(pattern.dtype, own):
            return None
        whole, size = self.whole(pattern.tensor), self._dtype.itemsize
        shape = (self.shape(pattern)[0], *(num for _, num in pattern.dims))
        strides = (whole.strides[0], *(step * size for step, _ in pattern.dims))
        first = pattern.start * whole.strides[0] + pattern.offset * size
        return np.ndarray(shape, self._dtype, whole, first, strides)

    def places(self, pattern: PatternRecord, count: int) -> Records | None:
        """Return a view of all places of a pattern with run-time offsets: (offsets, *shape)."""
        window = self.window(pattern.standing)
        if window is None or pattern.dynamic is None:
            return None
        stride = pattern.dynamic.stride * self._dtype.itemsize
        return as_strided(window, (count, *window.shape), (stride, *window.strides))

    def reads_same(self, accessed: DType, own: DType) -> bool:
        """Return whether an access by another type finds the tensor's own elements."""
        return accessed.size == own.size


class Operands:
    """An instruction before it runs."""

    def __init__(self, record: InstructionRecord, memory: Memory) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no operands")
        self.row, self.place = row, record.place
        self._memory = memory
        self.operands = dict(zip(row.operand_index, record.operands, strict=False))
        self.attributes: Mapping[str, Any] = dict(
            zip(row.attribute_index, record.attributes, strict=True)
        )

    def pattern(self, name: str) -> PatternRecord | None:
        """Return the operand if it is a tile."""
        operand = self.operands.get(name)
        return operand if type(operand) is PatternRecord else None

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return (partitions, *free dimensions), HBM (1, *dimensions)."""
        operand = self.pattern(name)
        return self._memory.form(operand).shape if operand is not None else ()

    def first(self, name: str) -> int:
        """Return the first partition of an on-chip tile."""
        operand = self.pattern(name)
        return self._memory.form(operand).first if operand is not None else 0
