"""Reusable scratch arrays for intermediate results.

Arithmetic on tiles must not allocate: a fresh 128 x 512 array costs more than adding two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 16  # elements processed at a time, so that intermediates stay in the L2 cache


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.memory: dict[str, NDArray[np.uint8]] = {}
        self.views: dict[tuple[Any, ...], NDArray[Any]] = {}


_BUFFERS = _Buffers()


def scratch(slot: str, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an uninitialised array in C order; the next call for `slot` may return the same one.

    A slot belongs to one function of this package, which must not hold the array across calls of
    other functions that use the slot. Slots are per thread.
    """
    key = (slot, shape, dtype)
    view = _BUFFERS.views.get(key)
    return _make(key) if view is None else view


def _make(key: tuple[str, tuple[int, ...], type[np.generic]]) -> NDArray[Any]:
    slot, shape, dtype = key
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = _BUFFERS.memory.get(slot)
    if memory is None or memory.size < size:
        memory = _BUFFERS.memory[slot] = np.empty(size, np.uint8)
        # Views of the old memory would keep it alive.
        _BUFFERS.views = {k: v for k, v in _BUFFERS.views.items() if k[0] != slot}
    view = memory[:size].view(dtype).reshape(shape)
    _BUFFERS.views[key] = view
    return view


def blocks(
    shape: tuple[int, ...], block: int = BLOCK, cut: int | None = None
) -> Iterator[tuple[slice | EllipsisType, ...]]:
    """Yield indexes that cut an array of this shape into parts of at most `block` elements, in
    order.

    With `cut`, only the first `cut` axes are cut, and parts may be larger.
    """
    size, cut = prod(shape), len(shape) if cut is None else cut
    if size <= block or cut == 0:
        yield (...,)
        return
    inner = size // shape[0]
    if inner > block:
        for row in range(shape[0]):
            for inner_block in blocks(shape[1:], block, cut - 1):
                yield (slice(row, row + 1), *inner_block)
        return
    rows = block // inner
    for start in range(0, shape[0], rows):
        yield (slice(start, start + rows),)
