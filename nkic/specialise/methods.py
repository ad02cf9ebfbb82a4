"""Methods of Python's own types that need a guard: their result can be huge, or they go through
the whole value, or through everything in it, without a step of the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from nkic.specialise.arrays import ConstantArray
from nkic.specialise.budget import Budget
from nkic.specialise.kinds import real
from nkic.specialise.nesting import Nesting
from nkic.specialise.texts import Texts

_TEXT = (str, bytes)
_OWNERS = (str, bytes, list, tuple, dict, set, frozenset, range, int)
Method = Callable[..., Any]


class Methods:
    """Guarded methods of text, containers and integers, by name."""

    def __init__(self, budget: Budget, texts: Texts, nesting: Nesting) -> None:
        self._budget = budget
        self._texts = texts
        self._nesting = nesting

    def find(self, owner: Any, name: str) -> Method | None:
        """The guarded method, or None where the plain one will do.

        `owner` may be the type itself: `str.join(", ", words)`.
        """
        if name not in GUARDED:
            return None
        owner = real(owner)
        if isinstance(owner, type):
            return self._unbound(owner, name)
        if isinstance(owner, _TEXT):
            return self._of_text(owner, name)
        if isinstance(owner, ConstantArray):
            return self._converting(owner) if name == "astype" else None
        if isinstance(owner, list) and name == "extend":
            return self._extend(owner)
        if isinstance(owner, int):
            return self._to_bytes(owner) if name == "to_bytes" else None
        return self._of_container(owner, name) if isinstance(owner, _OWNERS) else None

    def _unbound(self, owner: type, name: str) -> Method | None:
        if not issubclass(owner, _OWNERS):
            return None
        if name in _MAKERS:
            return self._maker(owner, name)

        def call(value: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(value, owner):
                raise TypeError(f"{owner.__name__}.{name} needs a {owner.__name__} to work on")
            method = self.find(value, name) or getattr(value, name)
            return method(*args, **kwargs)

        return call

    def _maker(self, owner: type, name: str) -> Method:
        """`int.from_bytes` and `dict.fromkeys`."""

        def make(values: Any, *args: Any, **kwargs: Any) -> Any:
            found = self._nesting.keys(values)
            self._budget.charge(len(found))
            if owner is int:
                self._budget.allow_bits(8 * len(found))
            method: Method = getattr(owner, name)
            return method(found, *args, **kwargs)

        return make

    # ---- text ------------------------------------------------------------------------------

    def _of_text(self, owner: Any, name: str) -> Method | None:
        if name == "format":
            return self._texts.format_method(owner)
        if name == "format_map":
            return self._texts.format_map_method(owner)
        if name == "join":
            return self._join(owner)
        return self._measured(owner, name) if hasattr(owner, name) else None

    def _measured(self, owner: Any, name: str) -> Method:
        length: Callable[..., int] = _LENGTHS.get(name, _as_long)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                size = length(owner, *args, **kwargs)
            except (TypeError, AttributeError):
                size = 0  # wrong arguments: the method itself says so
            self._budget.allow_length(size, "the text")
            self._budget.copied(size)
            result = getattr(owner, name)(*args, **kwargs)
            if isinstance(result, list):  # `split`: every part is a value of its own
                self._budget.charge(len(result))
            return result

        return call

    def _converting(self, owner: ConstantArray) -> Callable[[Any], ConstantArray]:
        def astype(dtype: Any) -> ConstantArray:
            self._budget.charge(owner.size >> 1)
            return owner.astype(dtype)

        return astype

    def _join(self, owner: Any) -> Callable[[Any], Any]:
        def join(parts: Any) -> Any:
            values = list(parts)
            sizes = [len(part) for part in values if isinstance(part, _TEXT)]
            self._budget.copied(len(values))
            self._budget.allow_length(sum(sizes) + len(owner) * len(values), "the text")
            self._budget.copied(sum(sizes))
            return owner.join(values)

        return join

    # ---- containers ------------------------------------------------------------------------

    def _of_container(self, owner: Any, name: str) -> Method | None:
        if not hasattr(owner, name):
            return None
        look = self._look(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            args = look(args)
            self._budget.copied(_gone_through(owner, name, args))
            if name == "sort":
                self._nesting.all_compared(owner)
            return getattr(owner, name)(*args, **kwargs)

        return call

    def _look(self, name: str) -> Callable[[tuple[Any, ...]], Any]:
        """What happens to the arguments of a method before it is called."""
        if name in _SEARCHING:
            return self._nesting.all_compared
        return self._materialised if name in _JOINING else self._nesting.keys

    def _materialised(self, args: tuple[Any, ...]) -> list[Any]:
        """Sets and dicts hold what was counted; of other things the elements are counted."""
        return [arg if isinstance(arg, set | frozenset | dict) else self._each(arg) for arg in args]

    def _each(self, values: Any) -> list[Any]:
        found = self._nesting.keys(values)
        self._budget.copied(len(found))
        for pair in found:
            if isinstance(pair, list):  # of `dict.update`; a tuple's parts were counted with it
                self._nesting.keys(pair[:1])
        return found

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
        def to_bytes(length: Any = 1, byteorder: Any = "big", *, signed: bool = False) -> bytes:
            self._budget.allow_length(index(length), "the result")
            return owner.to_bytes(length, byteorder, signed=signed)

        return to_bytes


def _gone_through(owner: Any, name: str, args: Sequence[Any]) -> int:
    """Elements that a method of a container copies, or so many that it takes as long."""
    if name in _HASHING or (name == "pop" and isinstance(owner, dict)):
        return 0
    if isinstance(owner, list) and name in ("insert", "pop"):
        place = args[0] if args and isinstance(args[0], int) else -1
        return (-place if place < 0 else max(len(owner) - place, 0)) >> 5  # those that move
    # The first element of a set is that of all in order; a range compares what is no integer.
    return 16 * len(owner) if name == "pop" or isinstance(owner, range) else len(owner)


def _as_long(owner: Any, *_: Any, **__: Any) -> int:
    return len(owner)


def _width(owner: Any, width: int, *fill: Any) -> int:
    return index(width)


def _tabs(owner: Any, tabsize: int = 8) -> int:
    return len(owner) + int(owner.count("\t" if isinstance(owner, str) else b"\t")) * index(tabsize)


def _replaced(owner: Any, old: Any, new: Any, count: int = -1) -> int:
    return len(owner) + int(owner.count(old)) * len(new)


def _translated(owner: Any, table: Any) -> int:
    parts = [len(value) for value in table.values() if isinstance(value, str)]
    return len(owner) * max(parts, default=1)


# How long the result of a method of text may get, given its arguments; others give no more
# than the text itself.
_LENGTHS: dict[str, Callable[..., int]] = {
    "ljust": _width,
    "rjust": _width,
    "center": _width,
    "zfill": _width,
    "expandtabs": _tabs,
    "replace": _replaced,
    "translate": _translated,
}
_MAKERS = frozenset({"from_bytes", "fromkeys"})
_SEARCHING = frozenset({"index", "count", "remove"})  # lists compare what they are given
_JOINING = frozenset(
    {
        *("update", "union", "intersection", "difference", "symmetric_difference"),
        *("intersection_update", "difference_update", "symmetric_difference_update"),
        *("issubset", "issuperset", "isdisjoint"),
    }
)
_OF_CONTAINERS = frozenset({"insert", "reverse", "sort", "pop", "copy", "clear"})
_HASHING = frozenset({"get", "setdefault", "add", "discard"})
# Names of attributes that translated code reads through the guard.
GUARDED = frozenset(
    {
        *(name for name in dir(str) if not name.startswith("_")),
        *("decode", "hex", "extend", "to_bytes", "astype"),
        *(*_MAKERS, *_SEARCHING, *_JOINING, *_HASHING, *_OF_CONTAINERS),
    }
)
