"""A process that stands beside the one that works, and ends it when time is up.

Python looks at signals and clocks between its own steps, so that one long operation in C (a
set of numbers with equal hashes) would outlive every limit that this process sets itself. So the
command forks at once: the child works, the parent waits, passes signals on, and ends the child
where it does not end by itself. Where the system lacks what this needs, the command works alone.

Only light modules are imported here: this comes before everything else.
"""

from __future__ import annotations

import os
import signal
import time
from enum import Enum
from typing import NamedTuple

from nkic.limits.page import NEVER, Page

GRACE = 2.0  # seconds from a signal, or from the limit of time, to the end by force
_LOOK = 0.5  # seconds between looks at the page
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_IS_POSSIBLE = hasattr(os, "fork") and hasattr(signal, "sigtimedwait")


class Why(Enum):
    """What ended the worker."""

    ITSELF = "itself"
    TIME = "time"  # our limit, by force
    CPU = "processor time"
    KILLED = "killed from outside"
    CRASH = "a crash of the interpreter"
    SIGNAL = "a signal"


class Ended(NamedTuple):
    """How the work ended: `code` is an exit code, of a shell where a signal did it."""

    why: Why
    code: int
    page: Page


_page: Page | None = None  # of this process, if it is watched


def page() -> Page | None:
    """The page that this process shares with its watcher; None without one."""
    return _page


def fork() -> Ended | None:
    """Divides the process: None in the child, which is to work; the parent comes back from here
    when the child has ended. None too where nothing is watched.
    """
    global _page
    if not _IS_POSSIBLE or _page is not None:
        return None
    shared, (read, write) = Page(), os.pipe()
    signals = {s for s in _PASSED_ON if signal.getsignal(s) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *signals})
    try:
        child = os.fork()
    except OSError:  # no process to be had
        child = 0
    if child == 0:
        _page = shared
        os.close(write)
        _end_with_watcher(read)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    os.close(read)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return _Watcher(child, shared, signals).wait()


def _end_with_watcher(read: int) -> None:
    """Asks the system to end this process when the other end of the pipe is closed: a watcher
    that is killed leaves no worker behind.
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
        self.asked = 0  # the signal that was passed on first
        self.end = NEVER  # when to use force after it
        self.by_force = False

    def wait(self) -> Ended:
        """Until the child has ended."""
        while True:
            found, status = os.waitpid(self.child, os.WNOHANG)
            if found:
                return self._verdict(status)
            self._look()
            left = min(self.page.deadline + GRACE, self.end) - time.monotonic()
            told = signal.sigtimedwait(self.waited, min(max(left, 0.01), _LOOK))
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._pass_on(told.si_signo)

    def _look(self) -> None:
        if time.monotonic() > min(self.page.deadline + GRACE, self.end):
            self.by_force = True
            os.kill(self.child, signal.SIGKILL)

    def _pass_on(self, number: int) -> None:
        """The child may have it already, from the terminal; it heeds the first one only."""
        os.kill(self.child, number)
        self.asked = self.asked or number
        self.end = min(self.end, time.monotonic() + GRACE)

    def _verdict(self, status: int) -> Ended:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return Ended(Why.ITSELF, code, self.page)
        if self.by_force:
            why, number = (Why.SIGNAL, self.asked) if self.asked else (Why.TIME, signal.SIGKILL)
            return Ended(why, 128 + number, self.page)
        return Ended(_WHY.get(-code, Why.SIGNAL), 128 - code, self.page)


_WHY: dict[int, Why] = {
    signal.SIGXCPU: Why.CPU,
    signal.SIGKILL: Why.KILLED,
    **dict.fromkeys(
        (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE), Why.CRASH
    ),
}
