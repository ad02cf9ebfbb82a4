"""How many threads NumPy's BLAS may use during a run.

Products of tiles are small: a second thread gains little on an idle machine and waits for its
core on a busy one, which takes ten times as long. Results do not depend on it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses `count` threads. It is one setting for the whole process where
    BLAS has threads of its own: of runs that overlap, that of the first thread counts, and is
    undone when that run ends.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=count, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """What is loaded when the first run starts, NumPy's BLAS among it; looking takes 2 ms."""
    return ThreadpoolController()
