"""A watcher process that kills the worker at its deadline.

Python handles signals only between bytecodes, so that one long operation in C (a set of numbers
with equal hashes) would outlive every limit that a process sets itself. The command therefore forks
at once: the child works; the parent waits, forwards signals, and kills the child if it does not end
by itself. Without the necessary system calls, the command runs without a watcher.

Only light modules are imported here, because this runs before everything else.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from enum import Enum
from typing import NamedTuple

# ------------------------------------------------------------------------------------------------
# A memory page shared by the worker and its watcher: the deadline, and the current source place.
# The worker writes, the watcher reads at any time. Each number is one aligned word, written at
# once, so that the watcher never sees a deadline that nobody has set; `struct.pack_into` would
# clear all fields first. A text is valid once its length is written.

_NUMBERS = 4  # deadline, time limit, grace, each in seconds, and the size of the place's text
_WORD = 8
_SIZE = 4096
GRACE = 2.0  # seconds from a signal, or from the deadline, to SIGKILL
NEVER = float("inf")


class Page:
    """The shared page, created before the fork. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        memory = memoryview(mmap.mmap(-1, _SIZE))
        self._numbers = memory[: _NUMBERS * _WORD].cast("d")
        self._place = memory[_NUMBERS * _WORD :]
        self.limit(NEVER, NEVER)
        self.grace = GRACE

    @property
    def deadline(self) -> float:
        """The deadline."""
        return self._numbers[0]

    @property
    def seconds(self) -> float:
        """The time limit in seconds."""
        return self._numbers[1]

    @property
    def grace(self) -> float:
        """The seconds that the worker has to end after a signal."""
        return self._numbers[2]

    @grace.setter
    def grace(self, seconds: float) -> None:
        self._numbers[2] = seconds

    def limit(self, deadline: float, seconds: float) -> None:
        """Set the deadline and the time limit; `NEVER` removes them."""
        self._numbers[0], self._numbers[1] = deadline, seconds

    def see(self, place: str) -> None:
        """Record the current source place."""
        text = place.encode("utf-8", "surrogateescape")
        if len(text) <= len(self._place):
            self._numbers[3] = 0
            self._place[: len(text)] = text
            self._numbers[3] = len(text)

    @property
    def seen(self) -> str:
        """The last place recorded; empty if there is none."""
        return bytes(self._place[: int(self._numbers[3])]).decode("utf-8", "surrogateescape")


# --------------------------------------------------------------------------------------------------

_CHECK_INTERVAL = 0.5  # seconds between checks of the page
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_IS_POSSIBLE = hasattr(os, "fork") and hasattr(signal, "sigtimedwait")


class Reason(Enum):
    """The reason for which the worker ended."""

    ITSELF = "itself"
    TIME = "time"  # our limit, enforced
    CPU = "processor time"
    KILLED = "killed from outside"
    CRASH = "a crash of the interpreter"
    SIGNAL = "a signal"


class Ended(NamedTuple):
    """The end of the worker: `code` is the exit code, 128 + number for a signal."""

    reason: Reason
    code: int
    page: Page


_page: Page | None = None  # the page of this process, if it is watched


def page() -> Page | None:
    """Return the page shared with the watcher; None without a watcher."""
    return _page


def fork(*, again: bool = False) -> Ended | None:
    """Fork a worker. Returns None in the child; the parent returns when the child has ended.

    Also returns None, without forking, if watching is not possible, or if this process is a worker
    itself, unless `again`.
    """
    global _page
    if not _IS_POSSIBLE or (_page is not None and not again):
        return None
    shared, (read, write) = Page(), os.pipe()
    signals = {s for s in _FORWARDED if signal.getsignal(s) is not signal.SIG_IGN}
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *signals})
    try:
        child = os.fork()
    except OSError:  # no process available
        child = 0
    if child == 0:
        _page = shared
        os.close(write)
        end_with(read)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        return None
    os.close(read)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return _Watcher(child, shared, signals).wait()


def end_with(read: int) -> None:
    """Have the system kill this process when the other end of the pipe is closed.

    A parent that is killed then leaves no child behind.
    """
    try:
        import fcntl

        fcntl.fcntl(read, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(read, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(read, fcntl.F_SETFL, fcntl.fcntl(read, fcntl.F_GETFL) | os.O_ASYNC)
    except (AttributeError, OSError):  # not on Linux
        pass


class _Watcher:
    def __init__(self, child: int, shared: Page, signals: set[signal.Signals]) -> None:
        self.child = child
        self.page = shared
        self.waited = {signal.SIGCHLD, *signals}
        self.forwarded = 0  # the first signal forwarded
        self.end = NEVER  # when to kill after it
        self.by_force = False

    def wait(self) -> Ended:
        while True:
            ended, status = os.waitpid(self.child, os.WNOHANG)
            if ended:
                return self._verdict(status)
            if time.monotonic() > min(self.page.deadline + GRACE, self.end):
                self.by_force = True
                os.kill(self.child, signal.SIGKILL)
            remaining = min(self.page.deadline + GRACE, self.end) - time.monotonic()
            received = signal.sigtimedwait(self.waited, min(max(remaining, 0.01), _CHECK_INTERVAL))
            if received is not None and received.si_signo != signal.SIGCHLD:
                # A child that has it from the terminal already ignores this one.
                os.kill(self.child, received.si_signo)
                self.forwarded = self.forwarded or received.si_signo
                self.end = min(self.end, time.monotonic() + self.page.grace)

    def _verdict(self, status: int) -> Ended:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return Ended(Reason.ITSELF, code, self.page)
        if self.by_force:
            reason, number = (
                (Reason.SIGNAL, self.forwarded) if self.forwarded else (Reason.TIME, signal.SIGKILL)
            )
            return Ended(reason, 128 + number, self.page)
        return Ended(_REASONS.get(-code, Reason.SIGNAL), 128 - code, self.page)


_REASONS: dict[int, Reason] = {
    signal.SIGXCPU: Reason.CPU,
    signal.SIGKILL: Reason.KILLED,
    **dict.fromkeys(
        (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE), Reason.CRASH
    ),
}
