"""Large zeroed arrays whose pages are mapped before the first access.

A page fault at first touch costs microseconds, many times the arithmetic on the page; pages mapped
in one call, and in huge pages if available, cost a fraction. If the system does not support this,
NumPy's zeros are used.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 20  # bytes; smaller arrays gain nothing over NumPy's own allocator
LINE = 64  # bytes of a cache line
HUGE_PAGE = 1 << 21  # bytes of a huge page
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not define
RESERVED = 1 << 26  # bytes of addresses that an arena reserves at once; pages are mapped with use
MAX_KEPT = 1 << 28  # bytes of results whose pages are kept
SOLE_REFERENCES = 2  # of an object with one owner: the owner's, and getrefcount's argument
GAP = 320  # bytes between neighbours, so that equal offsets in two arrays differ modulo 4 KiB


def zeros(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return a zeroed array of shape (rows, columns)."""
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    return _Pages(size).array(rows, columns, dtype)


class Arena:
    """Allocates adjacent zeroed arrays, in huge pages if available, which are freed together."""

    def __init__(self) -> None:
        self._pages: _Pages | None = None

    def zeros(self, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Return a zeroed array of shape (rows, columns)."""
        size = rows * columns * np.dtype(dtype).itemsize
        if size == 0 or not hasattr(mmap, "MADV_HUGEPAGE"):
            return np.zeros((rows, columns), dtype)
        if self._pages is None or self._pages.left < size:
            self._pages = _Pages(max(size, RESERVED))
        return self._pages.array(rows, columns, dtype)


def recycled(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of undefined contents, for a result that the run writes in full.

    Pages are reused, by any program of the process, once no array refers to them.
    """
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    pages = _idle(size) or _Pages(size)
    pages.used = 0
    array = pages.array(rows, columns, dtype)
    if size <= MAX_KEPT:
        _kept.append(pages)  # only now, since the array marks them as held
    return array


_kept: list[_Pages] = []  # the most recent last, held or idle, without those that are being taken


def _idle(size: int) -> _Pages | None:
    """Take idle pages of this size out of `_kept`, or make room there for new ones."""
    for pages in _kept[::-1]:  # the most recent are likely in the cache
        if len(pages.memory) == size and not pages.is_held:
            with suppress(ValueError):  # another thread has just taken them
                _kept.remove(pages)
                if not pages.is_held:
                    return pages
                _kept.append(pages)  # another thread has put them back in between
    while _kept and sum([len(pages.memory) for pages in [*_kept]]) + size > MAX_KEPT:
        with suppress(IndexError):
            _kept.pop(0)
    return None


class _Pages:
    """Reserved addresses: the first `mapped` bytes are mapped, and the first `used` are taken."""

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.used = self.mapped = 0
        with suppress(OSError):  # advice that this system does not support
            self.memory.madvise(mmap.MADV_HUGEPAGE)

    @property
    def left(self) -> int:
        return len(self.memory) - self.used

    @property
    def is_held(self) -> bool:
        """Whether an array refers to the memory."""
        return getrefcount(self.memory) > SOLE_REFERENCES

    def array(self, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Return an array of shape (rows, columns) in the next bytes."""
        count, first = rows * columns, self.used
        last = first + count * np.dtype(dtype).itemsize
        self.used = min(-(-last // LINE) * LINE + GAP, len(self.memory))
        if last > self.mapped:
            end = min(-(-last // HUGE_PAGE) * HUGE_PAGE, len(self.memory))
            with suppress(OSError):
                self.memory.madvise(POPULATE_WRITE, self.mapped, end - self.mapped)
            self.mapped = end
        return np.frombuffer(self.memory, dtype, count, first).reshape(rows, columns)
