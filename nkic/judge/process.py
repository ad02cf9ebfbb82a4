"""The judge's side of a candidate's process: requests, answers and their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import msgpack

from nkic.judge import child
from nkic.limits.worker import FORKED, started

FORKED.set_forkserver_preload([child.__name__])
_LARGEST = (1 << 31) - 1  # bytes of an answer
# What an answer must hold, unless it says that the candidate failed.
_ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "compile": {"data": bytes, "warnings": list},
    "load": {"data": bytes, "warnings": list},
    "run": {"outputs": dict, "time_ns": (int, float)},
    "time": {"sensitivity": dict},
    "fuzz": {},
}
_GRACE = 5  # seconds for a process to end


class Ended(Exception):
    """The candidate's process ended, or was ended, before it answered; the text says why.

    `by` says what ended it: "time", or the "process" itself.
    """

    def __init__(self, text: str, by: str = "process") -> None:
        super().__init__(text)
        self.by = by


class Process:
    """The process of one candidate, which lives no longer than the `with` block."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds, self.memory = seconds, memory

    def __enter__(self) -> Process:
        self._folder = TemporaryDirectory(prefix="nkic-candidate-")  # empty: it has no neighbours
        self._process, self._connection = started(child.serve, self.memory, self._folder.name)
        self._until = time.monotonic() + self.seconds
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        self._process.kill()
        self._process.join(_GRACE)
        self._folder.cleanup()

    def ask(self, do: str, **request: Any) -> Mapping[str, Any]:
        """Return the answer to a request. Raises `Ended`."""
        try:
            self._connection.send_bytes(msgpack.packb({"do": do, **request}))
            if not self._connection.poll(max(0.0, self._until - time.monotonic())):
                text = f"it takes more than the {self.seconds:g} s that the task allows"
                raise Ended(text, "time")
            answer: Any = msgpack.unpackb(self._connection.recv_bytes(_LARGEST))
        except (EOFError, OSError, ValueError) as error:
            self._process.join(_GRACE)
            code = self._process.exitcode
            raise Ended(f"its process ended with code {code}, without an answer") from error
        wanted = _ANSWERS[do] if isinstance(answer, dict) and "failed" not in answer else {}
        if not isinstance(answer, dict) or not all(
            isinstance(answer.get(key), kinds) for key, kinds in wanted.items()
        ):
            raise Ended("its process gave an answer that is none")
        return answer
