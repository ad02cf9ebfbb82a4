"""Refusal of files: always `ArtifactFailed`, with the section and the byte offset."""

from __future__ import annotations

from typing import Any, NoReturn

from nkic.base.diagnostics import ArtifactFailed, make
from nkic.base.text import clean

MAX_SHOWN_CHARACTERS = 40


class Malformed(Exception):
    """A part of a section violates the format. A caller that knows the position refuses the file.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "artifact-malformed") -> None:
        super().__init__(message)
        self.slug = slug


def refuse(
    slug: str,
    message: str,
    section: str = "",
    offset: int | None = None,
    *,
    help: str = "",
    notes: tuple[str, ...] = (),
) -> NoReturn:
    """Raise `ArtifactFailed`. `offset` counts bytes from the start of the file."""
    location = [f"section `{clean(section)}`"] if section else []
    location += [f"byte {offset:,}"] if offset is not None else []
    suffix = f" ({', '.join(location)})" if location else ""
    help = help or _ADVICE.get(slug, "")
    raise ArtifactFailed([make(slug, message + suffix, help=help, notes=notes)])


_ADVICE = {"artifact-damaged": "transfer the file again, as binary, or recompile the kernel"}


def shown(value: Any) -> str:
    """Return a short, printable form of a value from a file; containers show only their type."""
    if value is None:
        return "nil"
    if isinstance(value, int | float):
        return f"{value}"
    if isinstance(value, str):
        return f'"{clean(value[:MAX_SHOWN_CHARACTERS])}"'
    if isinstance(value, bytes):
        return "binary data"
    if isinstance(value, dict):
        return "a map"
    return "an array" if type(value) is tuple else "an extension type"


def at_most(number: int, limit: int, subject: str, help: str = "") -> None:
    """Refuse to write more than the format allows."""
    if number > limit:
        refuse("artifact-limit", f"{number:,} {subject}; the limit is {limit:,}", help=help)
