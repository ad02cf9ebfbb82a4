"""Names of the parameters of what a kernel calls, for messages about calls that do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nkic.evaluate.objects import Builtin, Class, Function, HostFunction, Method


def is_languages(function: Any) -> bool:
    """A function or class of the language, or a kernel's class without an `__init__` of its own."""
    if isinstance(function, Class):
        return function.machine is not None or function.payload.__module__.startswith("nkic.")
    return isinstance(function, HostFunction | Builtin)


def parameters(function: Any) -> list[str] | None:
    """Names of the parameters of what is called, if they are known."""
    if isinstance(function, Class):
        found = function.find("__init__")
        if isinstance(found, Function):
            return parameters(Method(found, None))
        named = list(getattr(found, "parameters", ()))
        return named or (_of_host(function.payload) if is_languages(function) else None)
    if isinstance(function, HostFunction):
        return _of_host(function.call)
    bound = isinstance(function, Method)
    function = function.function if isinstance(function, Method) else function
    function = getattr(function, "function", function)
    if not isinstance(function, Function):
        return None
    code = function.code
    found = [*code.positional[1 if bound else 0 :], *code.named_only]
    return [*found, *filter(None, (code.rest, code.more))]


def _of_host(function: Callable[..., Any]) -> list[str] | None:
    with suppress(ValueError):  # some builtins do not tell
        return list(inspect.signature(function).parameters)
    return None
