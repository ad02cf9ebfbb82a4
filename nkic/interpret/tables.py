"""Decorators that fill the tables of builtin classes.

STR = builtin_class("str", str)

@method(STR, "upper")
def _(m: Machine, text: str) -> str: …
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from nkic.interpret.objects import UNSET, Builtin, Class, Getter, no_objects, rename

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_Function = TypeVar("_Function", bound=Callable[..., Any])

OBJECT = Class("object", (), {}, make=no_objects)


def builtin_class(name: str, payload: type, module: str = "builtins") -> Class:
    """Return an immutable class that all evaluations share."""
    return Class(name, (OBJECT,), {}, payload=payload, make=no_objects, module=module)


def method(cls: Class, name: str) -> Callable[[_Function], _Function]:
    """Register a function `(m, owner, …)` as a method; it refuses objects of other classes."""
    payload: Any = cls.payload
    # Python's own sets are values of kernels, too.
    kind = next((base for base in (set, frozenset) if issubclass(payload, base)), payload)

    def add(function: _Function) -> _Function:
        own = copied(function)  # several classes may share it, and messages name the class

        @wraps(function)
        def call(m: Machine, owner: Any = UNSET, /, *args: Any, **named: Any) -> Any:
            if not isinstance(owner, kind):
                refuse_owner(m, owner, called(kind), name)
            return own(m, owner, *args, **named)

        rename(own, f"{cls.name}.{name}")
        cls.members[name] = Builtin(f"{cls.name}.{name}", call)
        return function

    return add


def copied(function: Any) -> Any:
    """Return a function that does the same and may have another name."""
    code, defaults = function.__code__, function.__defaults__
    copy = FunctionType(
        code, function.__globals__, function.__name__, defaults, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def check_owner(m: Machine, owner: Any, kind: type, name: str) -> None:
    """Raise if a method that was read from its class is called on an object of another class."""
    if not isinstance(owner, kind):
        refuse_owner(m, owner, called(kind), name)


_NAMES = {
    **{"KernelSet": "set", "KernelFrozenSet": "frozenset"},
    **{"Generator": "generator", "LazyIterator": "iterator"},
}


def called(kind: type) -> str:
    """Return what kernels call a class of Python."""
    return _NAMES.get(kind.__name__, kind.__name__)


def refuse_owner(m: Machine, owner: Any, of: str, name: str) -> NoReturn:
    """Raise for a method `name` of the class `of` that is called on another object, or on none."""
    if owner is UNSET:
        raise TypeError(f"unbound method {of}.{name}() needs an argument")
    text = f"descriptor '{name}' for '{of}' objects"
    raise TypeError(f"{text} doesn't apply to a '{m.class_of(owner).name}' object")


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
