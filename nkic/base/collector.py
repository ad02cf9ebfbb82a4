"""Control of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the collector inside the block.

    Compilations and runs create no cycles and keep their objects to the end; traversing a million
    objects would take half as long as a compilation. The setting is global and is restored.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
