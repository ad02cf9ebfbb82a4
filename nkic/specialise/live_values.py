"""Copies of live arguments with tensors in place of arrays.

Containers and objects that hold arrays are copied, all others are passed as they are; the caller's
objects are never changed.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

KEEP = object()  # returned by `replace` for an unchanged value
Replace = Callable[[Any, str], Any]
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice})
_LEAVES = (
    *(int, float, complex, str, bytes, type, Enum),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
_MAX_DEPTH = 500


class Copier:
    """Copies the values of one call.

    `replace(value, path)` returns the tensor of an array, and KEEP for other values;
    `enters(kind)` tells whether objects of a class are traversed.
    """

    def __init__(self, replace: Replace, enters: Callable[[type], bool]) -> None:
        self._replace = replace
        self._enters = enters
        self._copies: dict[int, Any] = {}
        self._used_early: set[int] = set()  # used before they were complete
        self._alive: list[Any] = []
        self._depth = 0

    def value(self, value: Any, path: str) -> Any:
        """Return the value, or a copy with tensors inside. `path` is its location in the call."""
        if type(value) in _PLAIN:
            return value
        copied = self._copies.get(id(value), KEEP)
        if copied is not KEEP:
            self._used_early.add(id(value))
            return copied
        replaced = self._replace(value, path)
        if replaced is not KEEP:
            return replaced
        if self._depth > _MAX_DEPTH or isinstance(value, _LEAVES):
            return value
        self._alive.append(value)  # so that its id is not reused
        self._depth += 1
        try:
            return self._inside(value, path)
        finally:
            self._depth -= 1

    def _inside(self, value: Any, path: str) -> Any:
        if isinstance(value, tuple):
            return self._tuple(value, path)
        if type(value) in (list, set, dict):
            return self._container(value, path)
        if isinstance(value, frozenset):
            return self._rebuilt(value, self._set(value, path))
        if isinstance(value, functools.partial):
            return self._partial(value, path)
        if isinstance(value, types.MethodType):
            owner = self.value(value.__self__, path)
            same = owner is value.__self__
            return value if same else types.MethodType(value.__func__, owner)
        return self._object(value, path) if self._enters(type(value)) else value

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        names = getattr(type(value), "_fields", None) or range(len(value))
        elements = [
            self.value(element, f"{path}.{n}") for n, element in zip(names, value, strict=True)
        ]
        if all(new is old for new, old in zip(elements, value, strict=True)):
            return value
        return tuple.__new__(type(value), elements)

    def _set(self, value: Any, path: str) -> list[Any]:
        elements = sorted(value, key=repr)  # the iteration order depends on the process
        return [self.value(element, f"{path}.{n}") for n, element in enumerate(elements)]

    def _rebuilt(self, value: Any, elements: list[Any]) -> Any:
        same = {id(element) for element in value} == {id(element) for element in elements}
        return value if same else type(value)(elements)

    def _container(self, value: Any, path: str) -> Any:
        copied = self._copies[id(value)] = type(value)()
        if isinstance(value, dict):
            for key, element in value.items():
                copied[key] = self.value(element, f"{path}.{key}")
            same = all(copied[key] is element for key, element in value.items())
        elif isinstance(value, list):
            copied.extend(self.value(element, f"{path}.{n}") for n, element in enumerate(value))
            same = all(new is old for new, old in zip(copied, value, strict=True))
        else:
            copied.update(self._set(value, path))
            same = {id(element) for element in copied} == {id(element) for element in value}
        return self._finished(value, copied, same)

    def _object(self, value: Any, path: str) -> Any:
        try:
            copied = object.__new__(type(value))
        except TypeError:  # the class is implemented in C
            return value
        self._copies[id(value)] = copied
        same = True
        for name, element in list(fields(value)):
            new = self.value(element, f"{path}.{name}")
            same = same and new is element
            object.__setattr__(copied, name, new)
        return self._finished(value, copied, same)

    def _finished(self, value: Any, copied: Any, same: bool) -> Any:
        """Return the value itself if it holds no tensor, unless it is part of a cycle."""
        if same and id(value) not in self._used_early:
            self._copies[id(value)] = value
            return value
        return copied

    def _partial(self, value: functools.partial[Any], path: str) -> Any:
        function = self.value(value.func, f"{path}.func")
        args = [self.value(argument, f"{path}.args.{n}") for n, argument in enumerate(value.args)]
        named = {k: self.value(argument, f"{path}.{k}") for k, argument in value.keywords.items()}
        pairs = [(function, value.func), *zip(args, value.args, strict=True)]
        pairs += [(argument, value.keywords[k]) for k, argument in named.items()]
        same = all(new is old for new, old in pairs)
        return value if same else functools.partial(function, *args, **named)


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()
