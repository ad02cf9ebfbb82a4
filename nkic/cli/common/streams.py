"""The standard streams: what they can take, and how to leave them."""

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
    """Makes standard output and error safe to write any text to, also when they were closed."""
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _nowhere()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=FALLBACK)
            if isinstance(stream.buffer, io.RawIOBase) and stream is getattr(sys, f"__{name}__"):
                setattr(sys, name, _buffered(stream))


def _buffered(stream: io.TextIOWrapper) -> TextIO:
    """The same with a buffer. Without one (PYTHONUNBUFFERED), Python drops what the system did
    not take at once, as of a text that is larger than a pipe, and says nothing.
    """
    return open(
        stream.fileno(),
        "w",
        encoding=stream.encoding,
        errors=FALLBACK,
        closefd=False,
    )


class _Closed(io.TextIOBase):
    """Standard output that was closed from the start: what was asked for cannot be written, and
    to leave with 0 would say that it was.
    """

    encoding, errors = "utf-8", FALLBACK

    @property
    def buffer(self) -> _Closed:
        """For bytes, which are refused as well."""
        return self

    def write(self, data: object) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def release() -> None:
    """Before leaving: writes out both streams. What cannot be written must not change the exit
    code, as it would when the interpreter tries again: it goes nowhere.
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
    """How to write to `stream`, with the value of --color; reads the environment when called."""
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    return Paint(wants_colour(stream, choice, os.environ), not encoding.startswith("utf"))


def wants_colour(stream: TextIO, choice: str, environ: Mapping[str, str]) -> bool:
    """--color, then NO_COLOR, then FORCE_COLOR or CLICOLOR_FORCE, then whether it is a terminal.

    An empty NO_COLOR does not count (no-color.org), nor does 0 as a value of the other two.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
