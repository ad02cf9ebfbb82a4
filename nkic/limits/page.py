"""A page of memory that the worker and its watcher share: when to end, and where the work is.

The worker writes, the watcher reads. A text counts once its length is there.
"""

from __future__ import annotations

import mmap
import struct

_HEAD = struct.Struct("=ddI")  # when time is up, the seconds that were given, bytes of the place
_SIZE = 4096
NEVER = float("inf")


class Page:
    """Made before the fork. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        _HEAD.pack_into(self._memory, 0, NEVER, NEVER, 0)

    @property
    def deadline(self) -> float:
        """When time is up."""
        return float(_HEAD.unpack_from(self._memory)[0])

    @property
    def seconds(self) -> float:
        """How long the work may take."""
        return float(_HEAD.unpack_from(self._memory)[1])

    def limit(self, deadline: float, seconds: float) -> None:
        """Says when time is up; `NEVER` takes the limit away."""
        _HEAD.pack_into(self._memory, 0, deadline, seconds, len(self._text))

    def see(self, place: str) -> None:
        """Notes where the work is."""
        text, head = place.encode("utf-8", "surrogateescape"), (self.deadline, self.seconds)
        if len(text) <= _SIZE - _HEAD.size:
            _HEAD.pack_into(self._memory, 0, *head, 0)
            self._memory[_HEAD.size : _HEAD.size + len(text)] = text
            _HEAD.pack_into(self._memory, 0, *head, len(text))

    @property
    def seen(self) -> str:
        """The last place that was noted; empty if there is none."""
        return self._text.decode("utf-8", "surrogateescape")

    @property
    def _text(self) -> bytes:
        length = _HEAD.unpack_from(self._memory)[2]
        return self._memory[_HEAD.size : _HEAD.size + length]
