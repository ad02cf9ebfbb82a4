"""Decorators that fill the tables of builtin classes, and helpers of what stands in them.

STR = builtin_class("str", str)

@method(STR, "upper")
def _(m: Machine, text: str) -> str: …
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Getter,
    no_objects,
    rename,
)

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
    def add(function: _Function) -> _Function:
        table[name] = Builtin(name, function)
        return function

    return add


# ---- Helpers: calls of Python's own methods, argument checks ------------------------------------
# A method of Python receives the kernel's values unchanged; if it raises `TypeError`, the message
# is rewritten to name the kernel's classes. The cost of the call is charged before it runs.

Cost = Callable[["Machine", Any, Sequence[Any]], None]


def call_host(
    m: Machine,
    function: Callable[..., Any],
    args: Sequence[Any],
    named: Mapping[str, Any] | None = None,
) -> Any:
    """Call one of Python's own functions."""
    try:
        return function(*args, **(named or {}))
    except TypeError as error:
        original = message = str(error)
        for value in args:
            python_name, kernel_name = type(value).__name__, m.class_of(value).name
            if python_name != kernel_name and python_name in message:
                message = re.sub(rf"\b{python_name}\b", kernel_name, message)
        reworded = error if message == original else TypeError(message)
        if reworded is error:
            raise
        raise reworded from None


def host_method(cls: Class, kind: type, name: str, cost: Cost) -> None:
    """Register one of Python's own methods; `cost` charges for each call before it runs."""
    function = getattr(kind, name)

    def call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
        check_owner(m, owner, kind, name)
        cost(m, owner, args)
        return call_host(m, function, (owner, *args), named)

    cls.members[name] = Builtin(f"{cls.name}.{name}", call)


def no_extra_cost(m: Machine, owner: Any, args: Sequence[Any]) -> None:
    """Charge nothing more for a cheap method than the call itself."""


def class_method(cls: Class, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function `(m, cls, …)` as a class method."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.members[name] = ClassMethod(Builtin(f"{cls.name}.{name}", function))
        return function

    return add


def constructor(cls: Class) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that instantiates a class."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.make = function
        rename(function, cls.name)
        return function

    return add


def inheritable(cls: Class) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Allow kernels to inherit from a class; the function creates the payload of its objects."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.extra["inheritable"] = True
        cls.extra["content"] = function
        return function

    return add


def check_arity(name: str, args: Sequence[Any], minimum: int, maximum: int) -> None:
    """Raise Python's error about a wrong number of arguments."""
    count = len(args)
    if minimum <= count <= maximum:
        return
    if minimum == maximum:
        raise TypeError(f"{name} expected {maximum} argument{_s(maximum)}, got {count}")
    bound = minimum if count < minimum else maximum
    which = "at least" if count < minimum else "at most"
    raise TypeError(f"{name} expected {which} {bound} argument{_s(bound)}, got {count}")


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def check_call(
    name: str, args: Sequence[Any], named: Mapping[str, Any], minimum: int, maximum: int
) -> None:
    """Check the arguments of a function that takes no keyword arguments."""
    reject_keywords(name, named)
    check_arity(name, args, minimum, maximum)


def arguments_by_name(
    name: str, parameters: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by the names of the parameters, all of which are optional."""
    count = len(args) + len(named)
    if count > len(parameters):
        raise TypeError(f"{name}() takes at most {len(parameters)} arguments ({count} given)")
    unknown = named.keys() - {*parameters}
    if unknown:
        raise TypeError(f"'{min(unknown)}' is an invalid keyword argument for {name}()")
    return {**dict(zip(parameters, args, strict=False)), **named}


def reject_keywords(name: str, named: Mapping[str, Any]) -> None:
    """Raise if there are keyword arguments."""
    if named:
        raise TypeError(f"{name}() takes no keyword arguments")


def iterator_of(m: Machine, value: Any) -> Any:
    """Return an iterator over a value, as `iter` does."""
    return iter(m.iterate(value))


def text_of(m: Machine, value: Any) -> str:
    return value if value.__class__ is str else str.__str__(value)


def number_of(value: Any) -> Any:
    """Return a number as a plain `int` or `float`."""
    if value.__class__ in INSTANCES:
        return int.__index__(value) if isinstance(value, int) else float.__float__(value)
    return value
