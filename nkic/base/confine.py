"""Reading of files named by a kernel's source, confined to folders that the user allows.

An untrusted kernel must not decide which files nkic reads. Only regular files are read: a pipe
could block the reader, a device may have side effects, and `-` is an ordinary file name here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import cannot_read, real, refused
from nkic.base.text import clean, grouped

_folders: ContextVar[tuple[Path, ...] | None] = ContextVar("folders", default=None)


@contextmanager
def confined(folders: Sequence[Path]) -> Iterator[None]:
    """Inside the block, restrict `read` to files in these folders.

    Outside, all files are allowed: the kernel is then part of the running program.
    """
    before = _folders.set(tuple(folders))
    try:
        yield
    finally:
        _folders.reset(before)


def read(path: str, limit: int) -> bytes:
    """Return the contents of a file that a kernel names. Raises `UsageFailed`."""
    folders = _folders.get()
    if folders is not None and not is_inside(Path(path), folders):
        text = f"`{clean(path)}` is neither in the kernel's folder nor in one that --include names"
        advice = "name its folder with --include"
        raise UsageFailed([make("cannot-read", text, help=advice)])
    return read_regular(path, limit)


def is_inside(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether the file is in one of the folders, after resolving links in both."""
    try:
        resolved = real(path)
        return any(resolved.is_relative_to(real(folder)) for folder in folders)
    except (OSError, ValueError):  # a NUL in the path
        return False


def read_regular(path: str, limit: int) -> bytes:
    """Return the contents of a regular file of at most `limit` bytes. Raises `UsageFailed`."""
    try:
        with opened(path) as stream:
            data = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise refused(error, cannot_read(path, error)) from error
    if len(data) > limit:
        text = f"`{clean(path)}` is larger than the limit of {grouped(limit)} bytes"
        raise UsageFailed([make("cannot-read", text)])
    return data


@contextmanager
def opened(path: str, *, follow: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file.

    Raises `OSError` for any other, without waiting for the writer of a pipe, and for a symbolic
    link unless `follow`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    number = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    with os.fdopen(number, "rb") as stream:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(None, "it is not a regular file")
        yield stream
