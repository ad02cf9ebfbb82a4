"""Errors for calls that do not fit a function of Beta 1."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.base.suggest import did_you_mean

_RETURNS = (
    "an instruction of Beta 1 returns its result: leave `dst` out, and assign what it returns"
)


def fitting(called: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function`, known to kernels as `called`, to explain arguments that do not fit."""

    @wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        try:
            return function(*args, **more)
        except TypeError:
            check(called, function, args, more)
            raise

    return call


def check(
    called: str, function: Callable[..., Any], args: tuple[Any, ...], more: Mapping[str, Any]
) -> None:
    """Raise `KernelError` if `args` and `more` do not fit the parameters."""
    signature = inspect.signature(function)
    unknown = [name for name in more if name not in signature.parameters]
    if unknown:
        raise _unknown(called, signature, unknown[0])
    try:
        signature.bind(*args, **more)
    except TypeError as error:
        text = f"{called}: {error}".replace("'", "`")
        with_dst = called.startswith("nisa.") and _binds(signature, args[1:], more)
        help = f"{_RETURNS}; " if with_dst else ""
        raise KernelError("wrong-call", text, help=help + _usage(called, signature)) from None


def _binds(signature: inspect.Signature, args: tuple[Any, ...], more: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **more)
    except TypeError:
        return False
    return True


def _unknown(called: str, signature: inspect.Signature, name: str) -> KernelError:
    text = f"{called}: there is no parameter `{name}`"
    near = did_you_mean(name, signature.parameters) or _usage(called, signature)
    help = _RETURNS if name == "dst" else near
    return KernelError("wrong-call", text, help=help, argument=name)


def _usage(called: str, signature: inspect.Signature) -> str:
    return f"the call is {called}({', '.join(map(_word, signature.parameters.values()))})"


def _word(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=…"
