"""Values of kernels as messages show them."""

from __future__ import annotations

import reprlib
from typing import Any

_WRITER = reprlib.Repr()
_WRITER.maxlevel, _WRITER.maxlist, _WRITER.maxtuple, _WRITER.maxdict = 4, 8, 8, 8
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 200


def brief(value: Any, length: int = 60) -> str:
    """A value in few words: lists may share their parts and never end."""
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(_WRITER.repr(value).split())
    except Exception:  # a kernel's own __repr__ may fail
        return f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"
