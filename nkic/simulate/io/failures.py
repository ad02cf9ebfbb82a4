"""How input data is refused: always `InputFailed`, with the file and the member."""

from __future__ import annotations

from typing import NoReturn

from nkic.base.diagnostics import InputFailed, make
from nkic.base.text import clean


class Damaged(Exception):
    """A part of a file breaks its format. Whoever knows the file turns it into a refusal.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "bad-array-file", help: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.help = help


def refuse(path: str, error: Damaged, member: str = "") -> NoReturn:
    """Raises `InputFailed` for what was found in the file `path`."""
    name = "standard input" if path == "-" else f"`{clean(path)}`"
    part = f", array `{clean(member)}`" if member else ""
    raise InputFailed([make(error.slug, f"{name}{part}: {error}", help=error.help)])
