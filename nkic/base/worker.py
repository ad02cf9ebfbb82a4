"""A process that answers requests under limits that it sets itself: its start, and its loop.

Processes are forked from a server that has nkic loaded, so that starting one takes milliseconds.
Requests and answers are msgpack over a private pipe: data, which is never executed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

import msgpack

from nkic.base import limits

FORKED = multiprocessing.get_context("forkserver")
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class _Swapped:
    """A value of this process that is another one while blocks run, in whatever threads."""

    def __init__(self, table: Any, key: str, other: Any) -> None:
        self._table, self._key, self._other = table, key, other
        self._lock, self._blocks, self._own = threading.Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._own = self._table.get(self._key, "")  # "" is an unset variable
                self._table[self._key] = self._other
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._table[self._key] = self._own


_SAFE_PATH = _Swapped(os.environ, "PYTHONSAFEPATH", "1")  # imports nothing from the current folder
_NO_SCRIPT = _Swapped(sys.modules, "__main__", ModuleType("__main__"))


class _Noted:
    """Is pickled with a process, after Python has noted which script it is to import."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then

    def __reduce__(self) -> tuple[Any, ...]:
        self._then()
        return int, ()


def started(serve: Callable[..., None], *given: Any) -> tuple[Any, Any]:
    """Start a process that runs `serve(connection, *given)`; return it and our end."""
    connection, its_end = FORKED.Pipe()
    process: Any = FORKED.Process(target=serve, args=(its_end, *given), daemon=True)
    with _SAFE_PATH:
        resource_tracker.ensure_running()  # which unblocks the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the fork server inherits it
    try:
        with _SAFE_PATH, ExitStack() as hidden:
            hidden.enter_context(_NO_SCRIPT)
            process.noted = _Noted(hidden.close)  # other threads may need our script
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    its_end.close()
    return process, connection


@contextmanager
def by_themselves() -> Iterator[None]:
    """Let a Python that starts meanwhile import neither from the current folder nor our script.

    In the folder, `random.py` may be a kernel that nobody trusts. The script would do everything
    again that it does outside `if __name__ == "__main__"`.
    """
    with _SAFE_PATH, _NO_SCRIPT:
        yield


# What follows runs in that process.


def answer_requests(
    connection: Connection, memory: int, answer: Answer, afterwards: Callable[[], object]
) -> None:
    """Answer requests until the connection or the parent ends; `afterwards` follows each answer.

    The process has at most `memory` bytes, and its standard streams lead nowhere.
    """
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    limits.apply({"memory": memory, "core": 0})
    leave_streams()
    with suppress(EOFError):
        while True:
            request = msgpack.unpackb(connection.recv_bytes())
            connection.send_bytes(msgpack.packb(answer(request)))
            afterwards()


def leave_streams() -> None:
    """Let the standard streams of this process lead nowhere: its answers have another way."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
