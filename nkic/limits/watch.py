"""The last resort against compilations without end: a look at the clock and at the memory.

What kernels may do while they are evaluated is counted in steps, the same everywhere; this is for
what no count foresaw, and for programs that are simply too large for the machine. Only the main
thread of a process is watched, because only there signals arrive, and only between steps of
Python's: what one operation takes is the watcher's business (`watcher.py`).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from nkic.base.diagnostics import LimitHit, make
from nkic.base.source import NOWHERE, Span

SHARE = 0.8  # of the memory that was free when the compilation began
_INTERVAL = 0.05
_HELP = "move loops over data to the device: `nl.fori_loop`; or try smaller shapes"
_LATER = f"{_HELP}; --time-limit sets another limit"
Found = TypeVar("Found")
_STATM, _MEMINFO = Path("/proc/self/statm"), Path("/proc/meminfo")


@contextmanager
def watched(
    seconds: float, place: Callable[[], Span], see: Callable[[Span], None] = lambda place: None
) -> Iterator[None]:
    """Raises `LimitHit` inside once time or memory is used up; `place` is where to point, and
    `see` is told of it at every look.

    Does nothing in threads, or where someone else uses the alarm.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getitimer(signal.ITIMER_REAL)[0] or not _is_free():
        yield
        return
    end, room = time.monotonic() + seconds, used() + SHARE * free()

    def look(number: int, frame: FrameType | None) -> None:
        at = _quietly(place, NOWHERE)
        if time.monotonic() > end:
            text = f"the compilation takes more than {seconds:g} seconds"
            raise _Over("time-limit", text, at, _LATER)
        if _quietly(used, 0) > room:
            raise _Over(
                "out-of-memory", "the compilation has used up this machine's memory", at, _HELP
            )
        if at != NOWHERE:
            _quietly(lambda: see(at), None)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _INTERVAL, _INTERVAL)
    try:
        yield
    except _Over as over:
        raise LimitHit([over.diagnostic]) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _quietly(find: Callable[[], Found], otherwise: Found) -> Found:
    """A look must not fail, however deep the stack is at this moment, or however full memory."""
    try:
        return find()
    except Exception:
        return otherwise


class _Over(BaseException):
    """No stage may take this for an error of its own and go on with half a program."""

    def __init__(self, slug: str, message: str, span: Span, help: str) -> None:
        super().__init__(message)
        self.diagnostic = make(slug, message, span if span != NOWHERE else None, help=help)


def _is_free() -> bool:
    return signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def used() -> int:
    """Bytes of memory that the process has; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def free() -> int:
    """Bytes of memory that the machine can still give."""
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, ValueError, StopIteration):
        return 1 << 62
