"""How input data is refused: always `InputFailed`, with the file and the array."""

from __future__ import annotations

from typing import NoReturn

from nkic.base.diagnostics import InputFailed, make
from nkic.base.files import STANDARD
from nkic.base.text import clean


class Damaged(Exception):
    """A part of a file breaks its format. Whoever knows the file turns it into a refusal.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "bad-array-file", help: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.help = help


def refuse(path: str, error: Damaged, array: str = "") -> NoReturn:
    """Raises `InputFailed` for what was found in the file `path`."""
    part = f", array `{clean(array)}`" if array else ""
    raise InputFailed([make(error.slug, f"{called(path)}{part}: {error}", help=error.help)])


def called(path: str) -> str:
    """What messages call the file."""
    return "standard input" if path == STANDARD else f"`{clean(path)}`"
