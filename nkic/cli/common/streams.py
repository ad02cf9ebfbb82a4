"""The standard streams: make them safe to write to, and release them at exit."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from nkic.base.render import Paint
from nkic.base.text import FALLBACK

COLOUR_CHOICES = ("auto", "always", "never")


def settle() -> None:
    """Make standard output and error accept any text, even if they were closed."""
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _nowhere()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=FALLBACK)
            if isinstance(stream.buffer, io.RawIOBase) and stream is getattr(sys, f"__{name}__"):
                setattr(sys, name, _buffered(stream))


def _buffered(stream: io.TextIOWrapper) -> TextIO:
    """Return the same stream with a buffer.

    Without one (PYTHONUNBUFFERED), Python silently drops what the system does not accept at once,
    such as the rest of a text larger than a pipe's buffer.
    """
    return open(stream.fileno(), "w", encoding=stream.encoding, errors=FALLBACK, closefd=False)


class _Closed(io.TextIOBase):
    """Standard output that was closed from the start.

    The requested output cannot be written, and exit code 0 would claim that it was.
    """

    encoding, errors = "utf-8", FALLBACK

    @property
    def buffer(self) -> _Closed:
        """The stream for bytes, which are rejected as well."""
        return self

    def write(self, data: object) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def release() -> None:
    """Flush both streams before exit.

    Output that cannot be written is discarded: a second attempt by the interpreter would change the
    exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _silence(stream)


def _silence(stream: TextIO) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, suppress(OSError, ValueError):
        os.dup2(nowhere.fileno(), stream.fileno())


def paint_for(stream: TextIO, choice: str) -> Paint:
    """Return how to write to `stream` for a value of --color; reads the environment when called."""
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    return Paint(wants_colour(stream, choice, os.environ), not encoding.startswith("utf"))


def wants_colour(stream: TextIO, choice: str, environ: Mapping[str, str]) -> bool:
    """Whether to use colour: --color, then NO_COLOR, then FORCE_COLOR or CLICOLOR_FORCE, then
    isatty.

    An empty NO_COLOR does not count (no-color.org), nor does 0 as a value of the other two.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
