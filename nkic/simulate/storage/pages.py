"""Large zeroed arrays whose pages are there before the first access.

A page that the kernel supplies at first touch costs microseconds, many times the arithmetic on
it; asked for in one call, and in huge pages where there are, they cost a fraction. Where that
cannot be asked for, NumPy's zeros.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 20  # bytes that NumPy's own allocator handles as well
LINE = 64  # bytes of the processor's cache that come together
HUGE = 1 << 21  # bytes of a huge page
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not name


RESERVED = 1 << 26  # bytes of addresses that an arena asks for at once; pages come with use
ALONE = 2  # references to what one object has and nobody else: the object's, and the question's
APART = 320  # bytes between neighbours, so that equal places in two arrays differ modulo 4 KiB


def zeros(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """A zeroed array of shape (rows, columns)."""
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    return np.frombuffer(_Pages(size).take(size), dtype).reshape(rows, columns)


class Arena:
    """Zeroed arrays that lie side by side, in huge pages where there are; they live together."""

    def __init__(self) -> None:
        self._pages: _Pages | None = None

    def zeros(self, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        """As the function of this name."""
        size = rows * columns * np.dtype(dtype).itemsize
        if size == 0 or not hasattr(mmap, "MADV_HUGEPAGE"):
            return np.zeros((rows, columns), dtype)
        if self._pages is None or self._pages.left < size:
            self._pages = _Pages(max(size, RESERVED))
        return np.frombuffer(self._pages.take(size), dtype).reshape(rows, columns)


class Recycled:
    """Arrays that every run makes anew and fills: pages of one that nobody holds any longer are
    taken again, with what is in them.
    """

    def __init__(self) -> None:
        self._pages: dict[object, _Pages] = {}

    @property
    def bytes(self) -> int:
        """All that is kept."""
        return sum(len(pages.memory) for pages in self._pages.values())

    def array(self, key: object, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        """An array of undefined contents, or of zeros; `key` stands for its shape and type."""
        size = rows * columns * np.dtype(dtype).itemsize
        if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
            return np.zeros((rows, columns), dtype)
        pages = self._pages.get(key)
        if pages is None or pages.is_held:
            pages = self._pages[key] = _Pages(size)
        pages.used = 0
        return np.frombuffer(pages.take(size), dtype).reshape(rows, columns)


class _Pages:
    """Addresses of which the first `there` bytes have pages, and the first `used` are taken."""

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.used = self.there = 0
        with suppress(OSError):  # advice that this system does not know
            self.memory.madvise(mmap.MADV_HUGEPAGE)

    @property
    def left(self) -> int:
        return len(self.memory) - self.used

    @property
    def is_held(self) -> bool:
        """An array lies there: whatever sees the memory refers to it."""
        return getrefcount(self.memory) > ALONE

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        first = self.used
        last = first + size
        self.used = min(-(-last // LINE) * LINE + APART, len(self.memory))
        if last > self.there:
            end = min(-(-last // HUGE) * HUGE, len(self.memory))
            with suppress(OSError):
                self.memory.madvise(POPULATE_WRITE, self.there, end - self.there)
            self.there = end
        return memoryview(self.memory)[first:last]
