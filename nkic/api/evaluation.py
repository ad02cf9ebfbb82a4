"""The choice of how to evaluate a live kernel: traced natively, or in the closed world.

The choice is made by `evaluate=` of the call, else NKIC_EVALUATE, else `evaluate` under
`[tool.nkic]` in the pyproject.toml of the working directory or of a parent folder. By default
kernels are traced, unless the `nki` that they use is not nkic's: then only their source can be
evaluated.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from nkic.api import functions, names
from nkic.api.errors import refuse
from nkic.base import project

VARIABLE = "NKIC_EVALUATE"
NATIVE, CLOSED = "native", "closed"
OURS = "__nkic__"  # set in modules that nkic itself provides as `nki`


def is_native(argument: str | None, kernel: types.FunctionType) -> bool:
    """Whether Python itself calls the kernel. Raises `UsageFailed`."""
    wanted = chosen(argument)
    if wanted == CLOSED:
        return False
    kinds = set(_kinds(kernel))
    posing = getattr(sys.modules.get("nki"), OURS, False)
    ours = "ours" in kinds or (not kinds and posing)
    if ours and "foreign" not in kinds:
        return True
    if wanted == NATIVE:
        refuse(
            f"`{kernel.__qualname__}` cannot be traced natively: the `nki` that it uses is not "
            "nkic's",
            "call nkic.install() before nki is imported, or leave out evaluate=",
        )
    return False


def chosen(argument: str | None) -> str | None:
    """Return the choice of highest precedence; None if there is none. Raises `UsageFailed`."""
    for choice, origin in (
        (argument, "evaluate="),
        (os.environ.get(VARIABLE) or None, f"{VARIABLE} in the environment"),
        (project.setting("evaluate"), project.origin("evaluate")),
    ):
        if choice is None:
            continue
        if choice not in (NATIVE, CLOSED):
            refuse(f'{origin} is {choice!r}; it must be "native" or "closed"')
        return choice
    return None


def _kinds(kernel: types.FunctionType) -> Iterator[str]:
    """Yield "ours" or "foreign" for every NKI name that the kernel and its callees use, and
    "missing" for a customary name without a value.
    """
    waiting, seen = [kernel], {kernel}
    while waiting:
        function = waiting.pop()
        for name in functions.names_of(function.__code__):
            value = function.__globals__.get(name, _NOTHING)
            if value is _NOTHING:
                if not hasattr(builtins, name) and name in _CUSTOMARY:
                    yield "missing"
                continue
            if _is_nki(value):
                yield "ours" if _is_ours(value) else "foreign"
                continue
            called = functions.unwrapped(value) if callable(value) else None
            if isinstance(called, types.FunctionType) and called not in seen:
                seen.add(called)
                if not names.is_host(called.__module__ or ""):
                    waiting.append(called)


_NOTHING = object()
_CUSTOMARY = ("nl", "nisa", "nki", "ncc")  # the customary names of NKI's modules in kernels


def _is_nki(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return bool(names.module_of_nki(value.__name__))
    return names.nki(value) is not None


def _is_ours(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return bool(getattr(value, OURS, False))
    module = sys.modules.get(value.__module__)
    made_in = getattr(value, "__globals__", {}).get("__name__", type(value).__module__)
    return bool(getattr(module, OURS, False)) or made_in.startswith("nkic.")
