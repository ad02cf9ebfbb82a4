"""The bounds of all tensors of a program, element by element."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.bounds.algebra import Doubles


class Store:
    """Bounds by tensor: (partitions, elements), HBM (1, elements). Allocated on demand as zeros."""

    def __init__(self, executable: Executable) -> None:
        self._tensors = executable.tensors
        self._errors: dict[int, Doubles] = {}

    def whole(self, tensor: int) -> Doubles:
        """Return the bounds of a tensor."""
        if tensor not in self._errors:
            record = self._tensors[tensor]
            rows = record.shape[0] if record.buffer.on_chip else 1
            self._errors[tensor] = np.zeros((rows, prod(record.shape) // rows))
        return self._errors[tensor]

    def read(self, pattern: PatternRecord) -> Doubles:
        """Return the bounds of an access, (partitions, elements)."""
        errors = self.whole(pattern.tensor)
        window = self._window(pattern, errors)
        if window is None:
            rows, columns = self.shape(pattern)
            return np.full((rows, columns), np.inf if errors.any() else 0.0)
        return window.reshape(self.shape(pattern))

    def places(self, pattern: PatternRecord, count: int) -> Doubles | None:
        """Return a view of all places of a pattern with run-time offsets: (offsets, *shape)."""
        errors, window = self.whole(pattern.tensor), None
        if pattern.dynamic is not None:
            window = self._window(pattern.standing, errors)
        if window is None or pattern.dynamic is None:
            return None
        return as_strided(
            window, (count, *window.shape), (pattern.dynamic.stride * 8, *window.strides)
        )

    def write(self, pattern: PatternRecord, errors: Doubles) -> None:
        """Set the bounds; an access in another element size spoils the whole tensor."""
        whole = self.whole(pattern.tensor)
        window = self._window(pattern, whole)
        if window is not None:
            np.copyto(window, errors.reshape(window.shape))
        elif errors.any():
            whole[...] = np.inf

    def shape(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return the partitions (1 in HBM), and the elements of each."""
        rows = pattern.partitions if self._tensors[pattern.tensor].buffer.on_chip else 1
        return rows, prod(num for _, num in pattern.dims)

    def _window(self, pattern: PatternRecord, errors: Doubles) -> Doubles | None:
        """Return a view if the access is to the tensor's own elements at a fixed address."""
        if pattern.dynamic is not None:
            return None
        if pattern.dtype.size != self._tensors[pattern.tensor].dtype.size:
            return None
        rows, _ = self.shape(pattern)
        shape = (rows, *(num for _, num in pattern.dims))
        strides = (errors.strides[0], *(step * 8 for step, _ in pattern.dims))
        first = pattern.start * errors.strides[0] + pattern.offset * 8
        return np.ndarray(shape, np.float64, errors, first, strides)
