"""Live arguments with tensors in the places of arrays.

Containers and objects that hold arrays are copied, all others stay the ones they are; the
caller's are never changed.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

KEEP = object()  # what `replace` gives for a value that stays
Replace = Callable[[Any, str], Any]
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice})
_LEAVES = (
    *(int, float, complex, str, bytes, type, Enum),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
_MAX_DEPTH = 500


class Copier:
    """Copies the values of one call. `replace(value, where)` gives the tensor of an array, and
    KEEP for anything else; `enters(kind)` says of a class whether its objects are looked into.
    """

    def __init__(self, replace: Replace, enters: Callable[[type], bool]) -> None:
        self._replace = replace
        self._enters = enters
        self._made: dict[int, Any] = {}
        self._taken: set[int] = set()  # those which were used before they were complete
        self._alive: list[Any] = []
        self._depth = 0

    def value(self, value: Any, where: str) -> Any:
        """The value, or its copy with tensors inside. `where` is its place in the call."""
        if type(value) in _PLAIN:
            return value
        known = self._made.get(id(value), KEEP)
        if known is not KEEP:
            self._taken.add(id(value))
            return known
        found = self._replace(value, where)
        if found is not KEEP:
            return found
        if self._depth > _MAX_DEPTH or isinstance(value, _LEAVES):
            return value
        self._alive.append(value)  # its id must not be given again
        self._depth += 1
        try:
            return self._inside(value, where)
        finally:
            self._depth -= 1

    def _inside(self, value: Any, where: str) -> Any:
        if isinstance(value, tuple):
            return self._tuple(value, where)
        if type(value) in (list, set, dict):
            return self._container(value, where)
        if isinstance(value, frozenset):
            return self._rebuilt(value, self._set(value, where))
        if isinstance(value, functools.partial):
            return self._partial(value, where)
        if isinstance(value, types.MethodType):
            owner = self.value(value.__self__, where)
            same = owner is value.__self__
            return value if same else types.MethodType(value.__func__, owner)
        return self._object(value, where) if self._enters(type(value)) else value

    def _tuple(self, value: tuple[Any, ...], where: str) -> Any:
        names = getattr(type(value), "_fields", None) or range(len(value))
        parts = [self.value(one, f"{where}.{n}") for n, one in zip(names, value, strict=True)]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return tuple.__new__(type(value), parts)

    def _set(self, value: Any, where: str) -> list[Any]:
        elements = sorted(value, key=repr)  # Python's order depends on the process
        return [self.value(one, f"{where}.{n}") for n, one in enumerate(elements)]

    def _rebuilt(self, value: Any, parts: list[Any]) -> Any:
        same = {id(one) for one in value} == {id(one) for one in parts}
        return value if same else type(value)(parts)

    def _container(self, value: Any, where: str) -> Any:
        made = self._made[id(value)] = type(value)()
        if isinstance(value, dict):
            for key, one in value.items():
                made[key] = self.value(one, f"{where}.{key}")
            same = all(made[key] is one for key, one in value.items())
        elif isinstance(value, list):
            made.extend(self.value(one, f"{where}.{n}") for n, one in enumerate(value))
            same = all(new is old for new, old in zip(made, value, strict=True))
        else:
            made.update(self._set(value, where))
            same = {id(one) for one in made} == {id(one) for one in value}
        return self._settled(value, made, same)

    def _object(self, value: Any, where: str) -> Any:
        try:
            made = object.__new__(type(value))
        except TypeError:  # of a class of C
            return value
        self._made[id(value)] = made
        same = True
        for name, one in list(fields(value)):
            new = self.value(one, f"{where}.{name}")
            same = same and new is one
            object.__setattr__(made, name, new)
        return self._settled(value, made, same)

    def _settled(self, value: Any, made: Any, same: bool) -> Any:
        """The value itself where nothing in it is a tensor, unless it holds itself."""
        if same and id(value) not in self._taken:
            self._made[id(value)] = value
            return value
        return made

    def _partial(self, value: functools.partial[Any], where: str) -> Any:
        function = self.value(value.func, f"{where}.func")
        args = [self.value(one, f"{where}.args.{n}") for n, one in enumerate(value.args)]
        named = {k: self.value(one, f"{where}.{k}") for k, one in value.keywords.items()}
        pairs = [(function, value.func), *zip(args, value.args, strict=True)]
        pairs += [(one, value.keywords[k]) for k, one in named.items()]
        same = all(new is old for new, old in pairs)
        return value if same else functools.partial(function, *args, **named)


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, slots included."""
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()
