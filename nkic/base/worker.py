"""A process that answers requests under limits that it sets itself: its start, and its loop.

Processes are forked from a server that has nkic loaded, so that starting one takes milliseconds.
Requests and answers are msgpack over a private pipe: data, which is never executed.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

import msgpack

from nkic.base import limits

FORKED = multiprocessing.get_context("forkserver")
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_SAFE_PATH = "PYTHONSAFEPATH"  # Python's: import nothing from the current folder
_STARTING = threading.Lock()


def started(serve: Callable[..., None], *given: Any) -> tuple[Any, Any]:
    """Start a process that runs `serve(connection, *given)`; return it and our end."""
    connection, its_end = FORKED.Pipe()
    process = FORKED.Process(target=serve, args=(its_end, *given), daemon=True)
    with by_themselves():
        process.start()
    its_end.close()
    return process, connection


@contextmanager
def by_themselves() -> Iterator[None]:
    """Let a Python that starts meanwhile import neither from the current folder nor our script.

    In the folder, `random.py` may be a kernel that nobody trusts. The script would do everything
    again that it does outside `if __name__ == "__main__"`.
    """
    with _STARTING:
        path, main = os.environ.get(_SAFE_PATH, ""), sys.modules["__main__"]
        os.environ[_SAFE_PATH], sys.modules["__main__"] = "1", ModuleType("__main__")
        try:
            yield
        finally:
            os.environ[_SAFE_PATH], sys.modules["__main__"] = path, main  # "" is unset


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
