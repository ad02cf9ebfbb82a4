"""The server's side of the process that compiles: one at a time, killed when it is in the way."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import msgpack

from nkic.limits.worker import FORKED, started
from nkic.lsp import child

FORKED.set_forkserver_preload([child.__name__])
_LARGEST = 64 << 20  # bytes of an answer
_AGE = 300  # answers after which a process, which keeps trees of many texts, is replaced
_GRACE = 2  # seconds that the process may take beyond its own limit, and to end


class Ended(Exception):
    """The process ended, or was ended, before it answered; the text says why."""


class Checker:
    """A process that checks documents; the next request after its end starts another."""

    def __init__(self) -> None:
        self._worker: tuple[Any, Any] | None = None  # the process, and the connection to it
        self._one = threading.Lock()
        self._answers = 0
        self.stops = 0  # how often `stop` was called

    def ask(self, request: Mapping[str, Any], memory: int, stops: int) -> Mapping[str, Any]:
        """Return the answer to a request, made after `stops` stops. Blocks; raises `Ended`."""
        with self._one:
            process, connection = self._worker = self._worker or started(child.serve, memory)
            if self.stops != stops:  # while the process was started
                raise Ended("stopped")
            try:
                answer = _asked(connection, request)
            except (EOFError, OSError, ValueError) as error:
                self.stop()
                process.join(_GRACE)
                text = f"the process that checks this file ended with code {process.exitcode}"
                raise Ended(text) from error
            except Ended:
                self.stop()
                raise
            if "failed" in answer:
                self.stop()  # its memory may be full, its tables half made
                raise Ended(str(answer["failed"]))
            self._answers += 1
            if self._answers % _AGE == 0:
                self.stop()
            return answer

    def stop(self) -> None:
        """End the process, whatever it does; a request under way raises `Ended`."""
        self.stops += 1
        worker, self._worker = self._worker, None
        if worker is not None:
            worker[0].kill()


def _asked(connection: Any, request: Mapping[str, Any]) -> Mapping[str, Any]:
    connection.send_bytes(msgpack.packb(request))
    if not connection.poll(request["seconds"] + _GRACE):
        raise Ended(f"checking this file takes more than {request['seconds']:g} s (nkic.seconds)")
    answer: Any = msgpack.unpackb(connection.recv_bytes(_LARGEST))
    if not isinstance(answer, dict):
        raise Ended("the process that checks this file gave an answer that is none")
    return answer
