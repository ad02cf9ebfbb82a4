"""Arguments as text, for `--info`: the same text whoever evaluates the kernel.

It is made of the kernel's own values: an element type is `nl.bfloat16`, however it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkic.base.text import clean
from nkic.language.hosted import plain
from nkic.language.tensors.tensor import NkiTensor
from nkic.machine.dtypes import DTYPES, DType

LENGTH = 80  # characters of a value
_ELEMENTS = 8
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice, type(...)})
_BRACKETS: dict[type, tuple[str, str]] = {tuple: ("(", ")"), list: ("[", "]"), dict: ("{", "}")}


def text(value: Any, other: Callable[[Any], str]) -> str:
    """Return a short text for a value. `other` returns that of an object or function."""
    value = plain(value)
    kind = type(value)
    if kind is DType or (kind is str and value in DTYPES):  # for host code a dtype is its name
        return f"nl.{value}"
    if kind in _PLAIN:
        return short(repr(value))
    if isinstance(value, NkiTensor):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if kind not in _BRACKETS:
        return short(repr(value) if kind.__module__.startswith("nkic.language.") else other(value))
    items = list(value.items() if kind is dict else value)
    parts = [text(item, other) for item in items[:_ELEMENTS]]
    if kind is dict:
        parts = [f"{text(k, other)}: {text(v, other)}" for k, v in items[:_ELEMENTS]]
    inner = ", ".join(parts) + ", …" * (len(items) > _ELEMENTS)
    opening, closing = _BRACKETS[kind]
    return short(f"{opening}{inner}{closing}")


def short(shown: str) -> str:
    """Return a text without control characters, of at most `LENGTH` characters."""
    shown = clean(shown)
    return shown if len(shown) <= LENGTH else shown[: LENGTH - 1] + "…"
