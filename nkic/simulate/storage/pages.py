"""Large zeroed arrays whose pages are there before the first access.

A page that the kernel supplies at first touch costs microseconds, many times the arithmetic on
it; asked for in one call, and in huge pages where there are, they cost a fraction. Where that
cannot be asked for, NumPy's zeros.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 20  # bytes that NumPy's own allocator handles as well
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not name


def zeros(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """A zeroed array of shape (rows, columns)."""
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # advice that this system does not know
        pages.madvise(mmap.MADV_HUGEPAGE)
        pages.madvise(POPULATE_WRITE)
    return np.frombuffer(pages, dtype).reshape(rows, columns)
