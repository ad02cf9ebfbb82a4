"""Rejection of input data: always `InputFailed`, with the file and the array."""

from __future__ import annotations

from typing import NoReturn

from nkic.base.diagnostics import InputFailed, make
from nkic.base.files import STANDARD
from nkic.base.text import clean

CALL = "the call"  # in place of a path: the array is an argument of a Python call


class Damaged(Exception):
    """A part of a file violates its format; a caller that knows the file turns this into
    `InputFailed`.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "bad-array-file", help: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.help = help


def refuse(path: str, error: Damaged, array: str = "") -> NoReturn:
    """Raise `InputFailed` for an error in the file `path`."""
    suffix = f", array `{clean(array)}`" if array else ""
    raise InputFailed([make(error.slug, f"{called(path)}{suffix}: {error}", help=error.help)])


def called(path: str) -> str:
    """Return the name of the file, or of another source of arrays, in messages."""
    if path == CALL:
        return CALL
    return "standard input" if path == STANDARD else f"`{clean(path)}`"
