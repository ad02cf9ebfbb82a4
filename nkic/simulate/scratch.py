"""Arrays for intermediate results of one step, shared by all steps: only one runs at a time.

`nkic.machine.scratch` serves functions, which allocate at every call. A step allocates once, when
it is decoded, and keeps its arrays.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch:
    """Allocates arrays of undefined contents, in C order, distinct within a step."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.uint8]] = []
        self._views: dict[tuple[object, ...], NDArray[Any]] = {}
        self._next = 0

    def begin(self) -> None:
        """Start a new step, which may reuse the arrays of other steps."""
        self._next = 0

    def floats(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return an array of float32."""
        return self.array(shape, np.float32)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array that is not yet in use by the current step."""
        number = self._next
        self._next += 1
        key = (number, shape, dtype)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = self._view(number, shape, np.dtype(dtype))
        return view

    def _view(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        size = prod(shape) * dtype.itemsize
        if number == len(self._buffers):
            self._buffers.append(np.empty(0, np.uint8))
        if self._buffers[number].size < size:  # doubled, since users keep the outgrown buffer
            self._buffers[number] = np.empty(max(size, 2 * self._buffers[number].size), np.uint8)
        return self._buffers[number][:size].view(dtype).reshape(shape)
