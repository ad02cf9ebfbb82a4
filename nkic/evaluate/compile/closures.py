"""Closures that do not depend on the unit: calls, module names, tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nkic.evaluate.calls import without_machine
from nkic.evaluate.code import AT, FUNCTION, MACHINE, Evaluate, Frame
from nkic.evaluate.errors import Refused
from nkic.evaluate.objects import UNSET, Builtin, Function
from nkic.syntax import nodes

BUILTIN_COST = 8  # steps of calling a builtin function
Run = Callable[[Frame], Any]


def unset(name: str) -> UnboundLocalError:
    """Return the error about a variable without a value."""
    error = UnboundLocalError(
        f"cannot access local variable '{name}' where it is not associated with a value"
    )
    error.name = name
    return error


def refusing_complex(node: nodes.Constant) -> Evaluate:
    def refuse(f: Frame) -> Any:
        text = "complex numbers cannot be used in kernel code"
        help = "keep the real and imaginary parts in two tensors"
        raise Refused("not-in-nki", text, node.span, help)

    return refuse


def nothing(f: Frame) -> None:
    return None


def load_global(name: str, node: nodes.Node) -> Evaluate:
    def load(f: Frame) -> Any:
        value = f[FUNCTION].globals.get(name, UNSET)
        if value is UNSET:
            f[AT] = node
            return f[FUNCTION].runtime.lookup(name)
        return value

    return load


def assign_local(slot: int, value: Evaluate) -> Run:
    """Return the closure that assigns a variable without a cell."""

    def run(f: Frame) -> None:
        f[slot] = value(f)

    return run


def tuple_of(parts: tuple[Evaluate, ...]) -> Evaluate:
    """Return a closure that builds a tuple; the most common lengths need no loop."""
    if not parts:
        return lambda f: ()
    if len(parts) == 1:
        (only,) = parts
        return lambda f: (only(f),)
    if len(parts) == 2:
        first_part, second_part = parts
        return lambda f: (first_part(f), second_part(f))
    if len(parts) == 3:
        first, second, third = parts
        return lambda f: (first(f), second(f), third(f))
    if len(parts) == 4:
        a, b, c, d = parts
        return lambda f: (a(f), b(f), c(f), d(f))
    return lambda f: tuple([part(f) for part in parts])


def dict_of(names: tuple[str, ...], parts: tuple[Evaluate, ...]) -> Evaluate:
    """Return a closure that builds a dict, where the last value of a repeated name counts."""
    pairs = tuple(zip(names, parts, strict=True))
    return lambda f: {name: value(f) for name, value in pairs}


class CallArguments(NamedTuple):
    """The arguments of a call: the positional ones as a tuple, the keyword arguments as a dict.

    If none is starred, `values` returns all of them in one tuple, and `form` holds the number of
    positional arguments and the names of the keyword arguments.
    """

    positional: Evaluate
    keywords: Evaluate | None
    values: Evaluate | None = None
    form: tuple[int, tuple[str, ...]] = (0, ())


def plain_call(
    node: nodes.Call, func: Evaluate, positional: Evaluate, keywords: Evaluate | None
) -> Evaluate:
    if keywords is None:

        def run(f: Frame) -> Any:
            function, args = func(f), positional(f)
            f[AT] = node
            m = f[MACHINE]
            if function.__class__ is Function:
                return m.invoke(function, args, None)
            if function.__class__ is Builtin:
                m.left -= BUILTIN_COST
                try:
                    return function.call(m, *args)
                except TypeError as error:
                    raise without_machine(error) from None
            return m.call(function, args, None)

        return run

    def run_named(f: Frame) -> Any:
        function, args, named = func(f), positional(f), keywords(f)
        f[AT] = node
        return f[MACHINE].call(function, args, named)

    return run_named
