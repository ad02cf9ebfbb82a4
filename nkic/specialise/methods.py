"""Methods of Python's own types that need a guard because their result can be huge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkic.specialise.budget import Budget
from nkic.specialise.texts import Texts

_TEXT = (str, bytes)


class Methods:
    """Guarded methods of text, lists and integers, by name."""

    def __init__(self, budget: Budget, texts: Texts) -> None:
        self._budget = budget
        self._texts = texts

    def find(self, owner: Any, name: str) -> Callable[..., Any] | None:
        """The guarded method, or None where the plain one will do.

        `owner` may be the type itself: `str.join(", ", words)`.
        """
        if name not in GUARDED:
            return None
        if isinstance(owner, type):
            return self._unbound(owner, name)
        if isinstance(owner, _TEXT):
            return self._of_text(owner, name)
        if isinstance(owner, list) and name == "extend":
            return self._extend(owner)
        if isinstance(owner, list | dict) and name == "copy":
            return self._copy(owner)
        return self._to_bytes(owner) if isinstance(owner, int) and name == "to_bytes" else None

    def _unbound(self, owner: type, name: str) -> Callable[..., Any] | None:
        if not issubclass(owner, (*_TEXT, list, dict, int)):
            return None

        def call(value: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(value, owner):
                raise TypeError(f"{owner.__name__}.{name} needs a {owner.__name__} to work on")
            method = self.find(value, name) or getattr(value, name)
            return method(*args, **kwargs)

        return call

    def _of_text(self, owner: Any, name: str) -> Callable[..., Any] | None:
        if name == "format":
            return self._texts.format_method(owner)
        if name == "format_map":
            return self._texts.format_map_method(owner)
        if name == "join":
            return self._join(owner)
        return self._measured(owner, name) if name in _LENGTHS else None

    def _measured(self, owner: Any, name: str) -> Callable[..., Any]:
        length = _LENGTHS[name]

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                size = length(owner, *args, **kwargs)
            except (TypeError, AttributeError):
                size = 0  # wrong arguments: the method itself says so
            self._budget.allow_length(size, "the text")
            return getattr(owner, name)(*args, **kwargs)

        return call

    def _join(self, owner: Any) -> Callable[[Any], Any]:
        def join(parts: Any) -> Any:
            values = list(parts)
            sizes = [len(part) for part in values if isinstance(part, _TEXT)]
            self._budget.copied(len(values))
            self._budget.allow_length(sum(sizes) + len(owner) * len(values), "the text")
            return owner.join(values)

        return join

    def _copy(self, owner: Any) -> Callable[[], Any]:
        def copy() -> Any:
            self._budget.copied(len(owner))
            return owner.copy()

        return copy

    def _extend(self, owner: list[Any]) -> Callable[[Any], None]:
        def extend(values: Any) -> None:
            self.extend_list(owner, values)

        return extend

    def extend_list(self, owner: list[Any], values: Any) -> list[Any]:
        """`owner += values`."""
        more = values if isinstance(values, list | tuple | range | str) else list(values)
        self._budget.allow_length(len(owner) + len(more), "the list")
        self._budget.copied(len(more))
        owner.extend(more)
        return owner

    def _to_bytes(self, owner: int) -> Callable[..., bytes]:
        def to_bytes(length: int = 1, byteorder: Any = "big", *, signed: bool = False) -> bytes:
            self._budget.allow_length(length, "the result")
            return owner.to_bytes(length, byteorder, signed=signed)

        return to_bytes


def _width(owner: Any, width: int, *fill: Any) -> int:
    return width


def _tabs(owner: Any, tabsize: int = 8) -> int:
    return len(owner) + int(owner.count("\t" if isinstance(owner, str) else b"\t")) * tabsize


def _replaced(owner: Any, old: Any, new: Any, count: int = -1) -> int:
    return len(owner) + int(owner.count(old)) * len(new)


def _translated(owner: Any, table: Any) -> int:
    parts = [len(value) for value in table.values() if isinstance(value, str)]
    return len(owner) * max(parts, default=1)


# How long the result of a method of text may get, given its arguments.
_LENGTHS: dict[str, Callable[..., int]] = {
    "ljust": _width,
    "rjust": _width,
    "center": _width,
    "zfill": _width,
    "expandtabs": _tabs,
    "replace": _replaced,
    "translate": _translated,
}
# Names of attributes that translated code reads through the guard.
GUARDED = frozenset({*_LENGTHS, "format", "format_map", "join", "extend", "copy", "to_bytes"})
