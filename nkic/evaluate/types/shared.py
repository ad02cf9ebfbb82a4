"""What the tables of builtin classes share: calling Python's own methods, and asking of arguments.

A method of Python's own gets the kernel's values as they are; where it refuses them, its message
is made to speak of the kernel's classes. Before it runs, its work is paid for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import INSTANCES, Builtin, Class, ClassMethod, rename

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

Cost = Callable[["Machine", Any, Sequence[Any]], None]


def host(
    m: Machine,
    function: Callable[..., Any],
    args: Sequence[Any],
    named: Mapping[str, Any] | None = None,
) -> Any:
    """Calls one of Python's own functions."""
    try:
        return function(*args, **(named or {}))
    except TypeError as error:
        reworded = with_class_names(m, error, args)
        if reworded is error:
            raise
        raise reworded from None


def with_class_names(m: Machine, error: TypeError, values: Sequence[Any]) -> TypeError:
    """The error, with the names of the kernel's classes in place of the host's."""
    before = found = str(error)
    for value in values:
        own, shown = type(value).__name__, m.class_of(value).name
        if own != shown and own in found:
            found = re.sub(rf"\b{own}\b", shown, found)
    return error if found == before else TypeError(found)


def hosted(cls: Class, kind: type, name: str, cost: Cost) -> None:
    """Puts a method of Python's own into a table; `cost` pays for it before it runs."""
    function = getattr(kind, name)

    def call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
        own(m, owner, kind, name)
        cost(m, owner, args)
        return host(m, function, (owner, *args), named)

    cls.members[name] = Builtin(f"{cls.name}.{name}", call)


def own(m: Machine, owner: Any, kind: type, name: str) -> None:
    """Raises where a method taken from its class gets an object of another class."""
    if not isinstance(owner, kind):
        text = f"descriptor '{name}' for '{_name(kind)}' objects doesn't apply to a "
        raise TypeError(f"{text}'{m.class_of(owner).name}' object")


def _name(kind: type) -> str:
    return {"KernelSet": "set", "KernelFrozenSet": "frozenset"}.get(kind.__name__, kind.__name__)


def one_step(m: Machine, owner: Any, args: Sequence[Any]) -> None:
    """The cost of a method that does little: its call has been paid."""


def class_method(cls: Class, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Puts a function `(m, cls, …)` into a table, called with the class that it is taken from."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.members[name] = ClassMethod(Builtin(f"{cls.name}.{name}", function))
        return function

    return add


def makes(cls: Class) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function makes objects of the class when it is called."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.make = function
        rename(function, cls.name)
        return function

    return add


def inheritable(cls: Class) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Kernels may inherit from the class; the decorated function makes what such objects hold."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        cls.extra["inheritable"] = True
        cls.extra["content"] = function
        return function

    return add


def arity(name: str, args: Sequence[Any], least: int, most: int) -> None:
    """Raises Python's error about the number of arguments of a function of its own."""
    count = len(args)
    if least <= count <= most:
        return
    if least == most:
        raise TypeError(f"{name} expected {most} argument{_s(most)}, got {count}")
    bound = least if count < least else most
    which = "at least" if count < least else "at most"
    raise TypeError(f"{name} expected {which} {bound} argument{_s(bound)}, got {count}")


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def no_keywords(name: str, named: Mapping[str, Any]) -> None:
    """Raises for arguments by name."""
    if named:
        raise TypeError(f"{name}() takes no keyword arguments")


def iterated(m: Machine, value: Any) -> Any:
    """An iterator over a value, as `iter` gives it."""
    return iter(m.iterate(value))


def text_of(m: Machine, value: Any) -> str:
    """A text without the class that a kernel made from it."""
    return value if value.__class__ is str else str.__str__(value)


def number_of(value: Any) -> Any:
    """A number without the class that a kernel made from it."""
    if value.__class__ in INSTANCES:
        return int.__index__(value) if isinstance(value, int) else float.__float__(value)
    return value
