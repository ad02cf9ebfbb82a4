"""A last resort against endless compilations: periodic checks of the clock and of memory.

Evaluation of kernels is limited by counted steps, equally on every machine; this covers cases that
no count foresees, and programs too large for the machine. Only the main thread of a process is
watched, because only it receives signals, and only between Python's bytecodes: the watcher
(`watcher.py`) interrupts single long operations.
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

from nkic.base import watcher
from nkic.base.diagnostics import LimitHit, make
from nkic.base.source import NOWHERE, Span
from nkic.base.text import size

# ------------------------------------------------------------------------------------------------
# The encoding of places on the shared page: numbers first, since a path may contain anything.


def note(span: Span) -> None:
    """Tell the watcher, if any, the current place. Its path must be printable."""
    page = watcher.page()
    if page is not None:
        page.see("\n".join(map(str, (*span[1:], span.path))))


def read(text: str) -> Span | None:
    """Parse a recorded place; None if it is not one."""
    words = text.split("\n", 4)
    if len(words) < 5:
        return None
    line, column, end_line, end_column = map(int, words[:4])
    return Span(words[4], line, column, end_line, end_column)


# --------------------------------------------------------------------------------------------------

SHARE = 0.8  # of the memory available when the compilation starts
OWN = 128 << 20  # bytes that compiling the smallest kernel may take
_INTERVAL = 0.05
_HELP = "move loops over data to the device: `nl.fori_loop`; or try smaller shapes"
_LATER = f"{_HELP}; `--limit time=SECONDS` sets another limit"
Found = TypeVar("Found")
_STATM, _MEMINFO = Path("/proc/self/statm"), Path("/proc/meminfo")


@contextmanager
def watched(
    seconds: float,
    current: Callable[[], Span],
    see: Callable[[Span], None] = lambda current: None,
    memory: int | None = None,
) -> Iterator[None]:
    """Raise `LimitHit` inside the block once time or memory is used up.

    `current` returns the current source place for the error; `see` is called with it at every
    check. `memory` is the number of bytes that the kernel may take, by default most of what the
    machine has available.
    Has no effect in other threads, or if the alarm is in use.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getitimer(signal.ITIMER_REAL)[0] or not _is_free():
        yield
        return
    allowed = SHARE * free() if memory is None else min(memory + OWN, SHARE * free())
    end, memory_limit = time.monotonic() + seconds, used() + allowed

    def check(number: int, frame: FrameType | None) -> None:
        span = _quietly(current, NOWHERE)
        if time.monotonic() > end:
            text = f"the compilation takes more than {seconds:g} seconds"
            raise _Over("time-limit", text, span, _LATER)
        if _quietly(used, 0) > memory_limit:
            text = "the compilation has used up this machine's memory"
            if memory is not None and memory + OWN == allowed:
                text = f"the compilation has used more than {size(memory)} of memory"
            raise _Over("out-of-memory", text, span, _HELP)
        if span != NOWHERE:
            _quietly(lambda: see(span), None)

    previous = signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, _INTERVAL, _INTERVAL)
    try:
        yield
    except _Over as over:
        raise LimitHit([over.diagnostic]) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _quietly(call: Callable[[], Found], default: Found) -> Found:
    """Call `call`; a check must not fail, even with a deep stack or full memory."""
    try:
        return call()
    except Exception:
        return default


class _Over(BaseException):
    """Not an `Exception`: no stage may handle it and continue with half a program."""

    def __init__(self, slug: str, message: str, span: Span, help: str) -> None:
        super().__init__(message)
        self.diagnostic = make(slug, message, span if span != NOWHERE else None, help=help)


def _is_free() -> bool:
    return signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def used() -> int:
    """Return the memory of the process in bytes; 0 if the system does not report it."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def free() -> int:
    """Return the available memory of the machine in bytes."""
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, ValueError, StopIteration):
        return 1 << 62
