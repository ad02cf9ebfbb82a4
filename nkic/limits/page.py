"""A memory page shared by the worker and its watcher: the deadline, and the current source place.

The worker writes, the watcher reads. A text is valid once its length is written.
"""

from __future__ import annotations

import mmap
import struct

_HEAD = struct.Struct("=ddI")  # deadline, time limit in seconds, size of the place's text
_GRACE = struct.Struct("=d")  # at the end of the page
_SIZE = 4096
_PLACE = _SIZE - _HEAD.size - _GRACE.size  # bytes of the place's text
GRACE = 2.0  # seconds from a signal, or from the deadline, to SIGKILL
NEVER = float("inf")


class Page:
    """The shared page, created before the fork. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        _HEAD.pack_into(self._memory, 0, NEVER, NEVER, 0)
        self.grace = GRACE

    @property
    def grace(self) -> float:
        """The seconds that the worker has to end after a signal."""
        return float(_GRACE.unpack_from(self._memory, _SIZE - _GRACE.size)[0])

    @grace.setter
    def grace(self, seconds: float) -> None:
        _GRACE.pack_into(self._memory, _SIZE - _GRACE.size, seconds)

    @property
    def deadline(self) -> float:
        """The deadline."""
        return float(_HEAD.unpack_from(self._memory)[0])

    @property
    def seconds(self) -> float:
        """The time limit in seconds."""
        return float(_HEAD.unpack_from(self._memory)[1])

    def limit(self, deadline: float, seconds: float) -> None:
        """Set the deadline and the time limit; `NEVER` removes them."""
        _HEAD.pack_into(self._memory, 0, deadline, seconds, len(self._text))

    def see(self, place: str) -> None:
        """Record the current source place."""
        text, head = place.encode("utf-8", "surrogateescape"), (self.deadline, self.seconds)
        if len(text) <= _PLACE:
            _HEAD.pack_into(self._memory, 0, *head, 0)
            self._memory[_HEAD.size : _HEAD.size + len(text)] = text
            _HEAD.pack_into(self._memory, 0, *head, len(text))

    @property
    def seen(self) -> str:
        """The last place recorded; empty if there is none."""
        return self._text.decode("utf-8", "surrogateescape")

    @property
    def _text(self) -> bytes:
        length = _HEAD.unpack_from(self._memory)[2]
        return self._memory[_HEAD.size : _HEAD.size + length]
