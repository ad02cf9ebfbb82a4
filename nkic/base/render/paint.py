"""Colour of text, if enabled. It adds no information to the text."""

from __future__ import annotations

from typing import NamedTuple

ROLES = {
    "error": "1;31",
    "warning": "1;33",
    "remark": "1;36",
    "message": "1",
    "frame": "1;34",  # line numbers, bars, secondary labels
    "removed": "31",
    "added": "32",
}


class Paint(NamedTuple):
    """The capabilities of a stream."""

    colour: bool = False
    ascii: bool = False  # its encoding lacks most of Unicode

    def __call__(self, text: str, role: str) -> str:
        """Return `text` in the colour of a role, if colour is enabled."""
        return f"\x1b[{ROLES[role]}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Paint()
