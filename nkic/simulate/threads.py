"""The number of threads that NumPy's BLAS may use during a run.

Products of tiles are small: a second thread gains little on an idle machine, and on a busy one it
waits for its core, which takes ten times as long. Results do not depend on it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses `count` threads.

    This is one setting for the whole process if BLAS has its own threads: among overlapping runs,
    the first one's setting is used, and is reverted when that run ends.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=count, user_api="blas")
    return limit


def in_use() -> int:
    """Return the number of threads that BLAS uses now; 0 if its library is not known."""
    return max((library.num_threads for library in _blas()), default=0)


@cache
def _blas() -> list[Any]:
    return [one for one in _libraries().lib_controllers if one.user_api == "blas"]


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded when the first run starts, which takes 2 ms to find."""
    return ThreadpoolController()
