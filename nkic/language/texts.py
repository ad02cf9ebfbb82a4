"""Formatting of kernels' values for messages."""

from __future__ import annotations

import reprlib
from typing import Any


class _Writer(reprlib.Repr):
    """Python's writer of abridged texts, which writes the bounds of slices in full."""

    def repr_slice(self, value: slice, level: int) -> str:
        """Write a slice."""
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(self.repr1(part, level - 1) for part in parts)})"


_WRITER = _Writer()
_WRITER.maxlevel, _WRITER.maxlist, _WRITER.maxtuple, _WRITER.maxdict = 4, 8, 8, 8
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 200


def brief(value: Any, length: int = 60) -> str:
    """Format a value briefly, even a list that is cyclic or has shared parts."""
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(_WRITER.repr(value).split())
    except Exception:  # a kernel's own __repr__ may raise
        return f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"
