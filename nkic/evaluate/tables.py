"""Decorators that fill the tables of builtin classes.

STR = builtin_class("str", str)

@method(STR, "upper")
def _(m: Machine, text: str) -> str: …
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from nkic.evaluate.objects import Builtin, Class, Getter, no_objects

_Function = TypeVar("_Function", bound=Callable[..., Any])

OBJECT = Class("object", (), {}, make=no_objects)


def builtin_class(name: str, payload: type, module: str = "builtins") -> Class:
    """Return an immutable class that all evaluations share."""
    return Class(name, (OBJECT,), {}, payload=payload, make=no_objects, module=module)


def method(cls: Class, *names: str) -> Callable[[_Function], _Function]:
    """Register a function `(m, owner, …)` as a method of a class."""

    def add(function: _Function) -> _Function:
        for name in names:
            cls.members[name] = Builtin(f"{cls.name}.{name}", function)
        return function

    return add


def class_function(cls: Class, name: str) -> Callable[[_Function], _Function]:
    """Register a function `(m, …)` as a static method of a class."""

    def add(function: _Function) -> _Function:
        cls.members[name] = Builtin(f"{cls.name}.{name}", function, static=True)
        return function

    return add


def getter(cls: Class, name: str) -> Callable[[_Function], _Function]:
    """Register a function `(m, owner)` as a computed attribute of a class."""

    def add(function: _Function) -> _Function:
        cls.members[name] = Getter(name, function)
        return function

    return add


def builtin(name: str, table: dict[str, Any]) -> Callable[[_Function], _Function]:
    """Register a function `(m, …)` in a table of functions."""

    def add(function: _Function) -> _Function:
        table[name] = Builtin(name, function)
        return function

    return add
