"""Python's collector of cycles, which looks through all that is kept, over and over."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Off for as long as a compilation or a run goes on: neither makes cycles, what they make is
    kept to their end, and to look through a million objects takes as long as half of a
    compilation. The setting is the process's; it is put back as it was.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
