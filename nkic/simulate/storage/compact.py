"""Memory for tiles in a run whose order is known.

The device's addresses rotate, so that engines need not wait for each other; a processor's cache
prefers reuse. No value passes from one on-chip tensor to another by sharing bytes, since reading
bytes that the tensor itself has not written is a fault. So each tensor may be at any address from
its first use to its last, and the next tensor of its size reuses that memory, which is still in the
cache.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.neff.records import PatternRecord
from nkic.simulate.storage.memory import ALIGN, Memory, WindowForm
from nkic.simulate.storage.pages import Arena


class Compact:
    """Memory for the on-chip tensors that are not pieces of HBM tensors."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.bytes = 0
        self._arena = Arena()
        self._held: dict[int, NDArray[Any]] = {}  # by tensor
        self._free: dict[tuple[int, ...], list[NDArray[Any]]] = defaultdict(list)  # by shape
        self._windows: dict[tuple[object, ...], NDArray[Any]] = {}  # by array, form and address

    def window(self, pattern: PatternRecord, form: WindowForm) -> NDArray[Any] | None:
        """Return `Memory.window`, or None over the caller's memory, which differs between runs."""
        tensor, _, start, _, offset, _, _ = pattern
        array = self._held.get(tensor)
        if array is None:
            if not self.memory.is_tile(tensor):
                is_borrowed = self.memory.is_borrowed(tensor)
                return None if is_borrowed else self.memory.window(pattern, form)
            array = self._held[tensor] = self._take(tensor)
        key = (id(array), form, start, offset)
        found = self._windows.get(key)
        if found is None:
            row = array.strides[0]
            first, strides = start * row + offset * form.unit, form.strides
            found = np.ndarray(form.shape, form.storage, array, first, (row, *strides[1:]))
            self._windows[key] = found
        return found

    def release(self, tensor: int) -> None:
        """Free the tensor's memory after its last use."""
        array = self._held.pop(tensor, None)
        if array is not None:
            self._free[array.shape].append(array)

    def _take(self, tensor: int) -> NDArray[Any]:
        home, rows = self.memory.homes[tensor], self.memory.executable.tensors[tensor].shape[0]
        grid = home.region.grid
        size = home.pitch if grid is None else home.pitch // grid.size * 4
        shape = (rows, -(-size // ALIGN) * ALIGN)
        free = self._free[shape]
        if free:
            return free.pop()
        self.bytes += shape[0] * shape[1]
        return self._arena.zeros(*shape, np.uint8)
