"""Files of arrays as seekable streams; a file that cannot seek is read whole, up to a limit."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nkic.arrays.failures import Damaged, called
from nkic.base import confine
from nkic.base.diagnostics import InputFailed, UsageFailed, make
from nkic.base.files import STANDARD, cannot_read
from nkic.base.text import grouped

SLACK = 1 << 20  # bytes allowed beyond the arrays: headers, directory


class Opened(NamedTuple):
    """A file, and its size in bytes."""

    stream: BinaryIO
    size: int


@contextmanager
def opened(path: str, expected: int) -> Iterator[Opened]:
    """Open the file `path`, or standard input for `-`.

    A pipe or a device is read into memory, up to the `expected` bytes of data and some slack,
    because its size is unknown. Raises `UsageFailed` if the system cannot read, also while the
    caller reads.
    """
    try:
        with _stream(path) as stream:
            yield _whole(stream, path, expected + SLACK)
    except OSError as error:
        raise UsageFailed([cannot_read(path, error)]) from error


@contextmanager
def opened_file(path: str) -> Iterator[Opened]:
    """Open a regular file of which only headers are read; `-` is a file name here.

    Raises `UsageFailed` as `opened` does.
    """
    try:
        with confine.opened(path) as stream:
            yield Opened(stream, os.fstat(stream.fileno()).st_size)
    except (OSError, ValueError) as error:
        raise UsageFailed([cannot_read(path, error)]) from error


@contextmanager
def _stream(path: str) -> Iterator[BinaryIO]:
    if "\0" in path:
        raise OSError(None, "a path cannot contain a null character")
    if path != STANDARD:
        with Path(path).open("rb") as stream:
            yield stream
        return
    if sys.stdin is None:
        raise OSError("standard input is closed")
    yield sys.stdin.buffer


def _whole(stream: BinaryIO, path: str, limit: int) -> Opened:
    status = os.fstat(stream.fileno())
    if path != STANDARD and stat.S_ISREG(status.st_mode):
        return Opened(stream, status.st_size)
    data = stream.read(limit + 1)
    if len(data) > limit:
        text = (
            f"{called(path)} gives more than {grouped(limit)} bytes, all that the kernel's arrays"
        )
        help = "give only these arrays, uncompressed, or use a file instead of the pipe"
        raise InputFailed([make("input-too-large", f"{text} can take", help=help)])
    return Opened(io.BytesIO(data), len(data))


class Plain:
    """The bytes of a whole file, in order: for an npy file, or raw data."""

    def __init__(self, file: Opened) -> None:
        self.stream = file.stream
        self.left = file.size
        self.stream.seek(0)

    def read(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        data = self.stream.read(min(count, self.left))
        self._took(len(data), count)
        return data

    def fill(self, target: memoryview) -> None:
        """Fill all of `target`."""
        count = min(len(target), self.left)
        taken = self.stream.readinto(target[:count])  # type: ignore[attr-defined]
        self._took(taken, len(target))

    def finish(self) -> None:
        """Check that nothing is left."""
        if self.left:
            raise Damaged(f"{grouped(self.left)} bytes follow the array")

    def _took(self, count: int, wanted: int) -> None:
        self.left -= count
        if count != wanted:
            raise Damaged("it is truncated")
