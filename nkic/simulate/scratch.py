"""Arrays for intermediate results of one step, which all steps share: only one runs at a time.

`nkic.machine.scratch` serves functions, which ask at every call. A step asks once, when it is
decoded, and keeps what it was given.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch:
    """Hands out arrays of undefined contents, in C order, different ones within a step."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.uint8]] = []
        self._views: dict[tuple[object, ...], NDArray[Any]] = {}
        self._next = 0

    def begin(self) -> None:
        """A new step: arrays that others were given may be given again."""
        self._next = 0

    def floats(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """An array of float32."""
        return self.array(shape, np.float32)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array that the present step has not been given yet."""
        number = self._next
        self._next += 1
        key = (number, shape, dtype)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = self._view(number, shape, np.dtype(dtype))
        return found

    def _view(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        size = prod(shape) * dtype.itemsize
        if number == len(self._buffers):
            self._buffers.append(np.empty(0, np.uint8))
        if self._buffers[number].size < size:  # doubled: what is outgrown is kept by its users
            self._buffers[number] = np.empty(max(size, 2 * self._buffers[number].size), np.uint8)
        return self._buffers[number][:size].view(dtype).reshape(shape)
