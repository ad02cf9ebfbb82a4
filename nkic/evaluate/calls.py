"""Calls: bind arguments to the slots of a frame, by Python's rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nkic.base.source import Span
from nkic.evaluate.code import Code, Frame
from nkic.evaluate.objects import UNSET, Builtin, Class, Function, HostFunction, Method
from nkic.syntax import nodes

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine


def bind(
    m: Machine, function: Function, args: Sequence[Any], named: Mapping[str, Any] | None
) -> Frame:
    """Bind arguments to the slots of a new frame. Raises `TypeError` as Python does."""
    code = function.code
    if not named and len(args) == code.simple_arity:
        return [m, code.node, function, *args, *code.unset_locals]
    values = _values(m, code, function, args, named or {})
    return [m, code.node, function, *values, *code.unset_locals]


def _values(
    m: Machine, code: Code, function: Function, args: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Return the values in slot order: positional, `*args`, keyword-only, `**kwargs`."""
    names, count = code.positional, len(code.positional)
    values = list(args[:count])
    extra = tuple(args[count:])
    if extra and not code.vararg:
        raise _too_many(function, len(args), named)
    values += [UNSET] * (count - len(values))
    keywords: dict[str, Any] = {}
    extra_keywords: dict[str, Any] = {}
    for name, value in named.items():
        index = names.index(name) if name in names else -1
        if index >= code.positional_only:
            if values[index] is not UNSET:
                raise TypeError(f"{function.name}() got multiple values for argument '{name}'")
            values[index] = value
        elif name in code.keyword_only:
            keywords[name] = value
        elif code.kwarg:
            extra_keywords[name] = value
        else:
            raise _unknown(function, name, index)
    _fill(function, values)
    if code.vararg:
        m.elements(len(extra), "the arguments")
        values.append(extra)
    for name in code.keyword_only:
        value = keywords.get(name, function.keyword_defaults.get(name, UNSET))
        if value is UNSET:
            raise _missing_named(function, keywords)
        values.append(value)
    if code.kwarg:
        m.elements(2 * len(extra_keywords), "the arguments")
        values.append(extra_keywords)
    return values


def _fill(function: Function, values: list[Any]) -> None:
    """Fill in the defaults of the parameters that the call leaves out."""
    defaults = function.defaults
    first_default = len(values) - len(defaults)
    missing = []
    for index, value in enumerate(values):
        if value is UNSET:
            if index >= first_default:
                values[index] = defaults[index - first_default]
            else:
                missing.append(function.code.positional[index])
    if missing:
        raise _missing(function, missing, "positional ")


def _listed(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    if len(quoted) == 2:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def _missing(function: Function, names: Sequence[str], kind: str) -> TypeError:
    plural = "s" if len(names) > 1 else ""
    return TypeError(
        f"{function.qualname}() missing {len(names)} required {kind}argument{plural}: "
        f"{_listed(names)}"
    )


def _missing_named(function: Function, passed: Mapping[str, Any]) -> TypeError:
    bound_names = {**function.keyword_defaults, **passed}
    names = [name for name in function.code.keyword_only if name not in bound_names]
    return _missing(function, names, "keyword-only ")


def _too_many(function: Function, count: int, named: Mapping[str, Any]) -> TypeError:
    maximum, minimum = len(function.code.positional), len(function.code.positional)
    minimum -= len(function.defaults)
    takes = f"from {minimum} to {maximum}" if minimum != maximum else str(maximum)
    plural = "" if maximum == 1 and minimum == maximum else "s"
    were = "was" if count == 1 else "were"
    return TypeError(
        f"{function.qualname}() takes {takes} positional argument{plural} but {count} {were} given"
    )


def _unknown(function: Function, name: str, index: int) -> TypeError:
    if index >= 0:
        return TypeError(
            f"{function.qualname}() got some positional-only arguments passed as keyword "
            f"arguments: '{name}'"
        )
    return TypeError(f"{function.qualname}() got an unexpected keyword argument '{name}'")


def enter_cells(code: Code, frame: Frame, cells: Sequence[list[Any]]) -> None:
    """Store the variables that inner functions use in cells."""
    for slot in code.cell_parameters:
        frame[slot] = [frame[slot]]
    for slot in code.cell_locals:
        frame[slot] = [UNSET]
    for slot, cell in zip(code.free, cells, strict=True):
        frame[slot] = cell


_COUNTS = re.compile(r"takes (?:from (\d+) to )?(\d+) positional arguments? but (\d+) were given")


def without_machine(error: TypeError) -> TypeError:
    """Correct Python's argument counts for the machine, the first argument of every builtin."""
    inside = error.__traceback__.tb_next if error.__traceback__ is not None else None
    counts = _COUNTS.search(str(error))
    if counts is None or (inside is not None and inside.tb_next is not None):
        return error
    minimum, maximum, passed = (int(count or 0) - 1 for count in counts.groups())
    takes = f"from {minimum} to {maximum}" if counts[1] else str(maximum)
    plural, were = "" if maximum == 1 and not counts[1] else "s", "was" if passed == 1 else "were"
    text = f"takes {takes} positional argument{plural} but {passed} {were} given"
    return TypeError(str(error).replace(counts[0], text))


# ---- parameter names ----------------------------------------------------------------------------


def is_languages(function: Any) -> bool:
    """Whether `function` belongs to the language, or is a class without its own `__init__`."""
    if isinstance(function, Class):
        return function.machine is not None or function.payload.__module__.startswith("nkic.")
    return isinstance(function, HostFunction | Builtin)


def parameters(function: Any) -> list[str] | None:
    """Return the parameter names of a callable, or None if they are unknown."""
    if isinstance(function, Class):
        names = function.find("__init__")
        if isinstance(names, Function):
            return parameters(Method(names, None))
        named = list(getattr(names, "parameters", ()))
        return named or (_of_host(function.payload) if is_languages(function) else None)
    if isinstance(function, HostFunction):
        return _of_host(function.call)
    bound = isinstance(function, Method)
    function = function.function if isinstance(function, Method) else function
    function = getattr(function, "function", function)
    if not isinstance(function, Function):
        return None
    code = function.code
    names = [*code.positional[1 if bound else 0 :], *code.keyword_only]
    return [*names, *filter(None, (code.vararg, code.kwarg))]


def passed_on(text: str, values: Sequence[Any], lambdas: bool) -> str | None:
    """Return the name of the function that Python's message is about, if it was passed as an
    argument.

    `values` are the arguments of the call; `lambdas` tells whether one of them is a lambda.
    """
    named = re.match(r"(?:\w+\.)*(\w+|<lambda>)\(\)", text)
    functions = [getattr(value, "function", value) for value in values]
    passed = {function.name for function in functions if isinstance(function, Function)}
    passed |= {"<lambda>"} if lambdas else set()
    return named[1] if named and named[1] in passed else None


def argument_of(call: nodes.Call, parameter: str, position: int | None) -> Span | None:
    """Return the span of the argument for a parameter in a call."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.span
    if position is None or position >= len(call.args):
        return None
    before = call.args[: position + 1]
    starred = any(isinstance(argument, nodes.Starred) for argument in before)
    return None if starred else before[-1].span


def _of_host(function: Callable[..., Any]) -> list[str] | None:
    with suppress(ValueError):  # some builtins have no signature
        return list(inspect.signature(function).parameters)
    return None
