"""A process that answers requests under limits that it sets itself: its start, and its loop.

Processes are forked from a server that has nkic loaded, so that starting one takes milliseconds.
Requests and answers are msgpack over a private pipe: data, which is never executed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker, spawn, util
from multiprocessing.connection import Connection, wait
from typing import Any

import msgpack

from nkic.base import limits

FORKED = multiprocessing.get_context("forkserver")
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
NO_MEMORY = {"failed": "it takes more memory than it may", "by": "memory"}


# Processes by these names import nothing of the script that runs here: it would do again whatever
# it does outside `if __name__ == "__main__"`, and our processes need nothing of it.
OURS = "nkic worker"
ALONE = {OURS}
_SCRIPT = ("init_main_from_name", "init_main_from_path")  # as `multiprocessing` passes it on
_prepared = spawn.get_preparation_data


def _preparation(name: str) -> dict[str, Any]:
    data: dict[str, Any] = _prepared(name)
    return {k: v for k, v in data.items() if k not in _SCRIPT} if name in ALONE else data


setattr(spawn, "get_preparation_data", _preparation)  # noqa: B010 - it has no other way in


_VARIABLE = "PYTHONSAFEPATH"


class _SafePath:
    """While blocks run, in whatever threads, a Python that starts imports nothing from the current
    folder. There, `random.py` may be a kernel that nobody trusts.
    """

    def __init__(self) -> None:
        self._lock, self._blocks, self._before = threading.Lock(), 0, ""

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._before = os.environ.get(_VARIABLE, "")  # empty is as good as unset
                os.environ[_VARIABLE] = "1"
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                os.environ[_VARIABLE] = self._before


SAFE_PATH = _SafePath()


SHORT, LONGEST = "/tmp", 72  # bytes: the path of a socket in a folder of it has at most 107


def _make_folder() -> None:
    """Make the folder for sockets of processes, with a short path however long TMPDIR is."""
    before = tempfile.tempdir
    try:
        if len(os.fsencode(tempfile.gettempdir())) > LONGEST:
            tempfile.tempdir = SHORT
        util.get_temp_dir()
    finally:
        tempfile.tempdir = before


@contextmanager
def deaf(*others: signal.Signals) -> Iterator[None]:
    """Start threads and processes that a terminal's ^C and end, and other signals, do not reach: we
    end them.

    Elsewhere, these would show the traceback of a process that is loading, or end it before us.
    """
    blocked = (signal.SIGINT, signal.SIGHUP, *others)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        with SAFE_PATH:
            resource_tracker.ensure_running()  # which unblocks the first
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def started(serve: Callable[..., None], *given: Any) -> tuple[Any, Any]:
    """Start a process that runs `serve(connection, *given)`; return it and our end."""
    _make_folder()
    connection, its_end = FORKED.Pipe()
    process = FORKED.Process(target=serve, args=(its_end, *given), name=OURS, daemon=True)
    with SAFE_PATH, deaf(signal.SIGTERM):  # which a service's manager sends to all processes
        process.start()
    its_end.close()
    return process, connection


# What follows runs in that process.


def answer_requests(
    connection: Connection, memory: int, answer: Answer, afterwards: Callable[[], object]
) -> None:
    """Answer requests until the connection or the parent ends; `afterwards` follows each answer.

    The process has at most `memory` bytes, and its standard streams lead nowhere. Where memory ends
    outside `answer`, which may say so itself, the answer is `NO_MEMORY`.
    """
    too_much = msgpack.packb(NO_MEMORY)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    limits.apply({"memory": memory, "core": 0})
    leave_streams()
    with suppress(EOFError):
        while True:
            try:
                reply = msgpack.packb(answer(msgpack.unpackb(connection.recv_bytes())))
            except MemoryError:
                reply = too_much
            connection.send_bytes(reply)
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
