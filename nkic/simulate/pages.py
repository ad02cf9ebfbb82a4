"""Large zeroed arrays whose pages are there before the first access.

A page that the kernel supplies at first touch costs microseconds, many times the arithmetic on
it; asked for in one call they cost a fraction. Where that call does not exist, NumPy's zeros.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 20  # bytes that NumPy's own allocator handles as well


def zeros(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """A zeroed array of shape (rows, columns)."""
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MAP_POPULATE"):
        return np.zeros((rows, columns), dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype).reshape(rows, columns)
