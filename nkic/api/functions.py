"""Live functions: where their source is, and the values that only the running program has."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

from nkic.api import names
from nkic.api.errors import refuse


def unwrapped(value: Any) -> Any:
    """Return the Python function beneath `nki.jit` and other wrappers; a partial is kept."""
    *_, innermost = _layers(value)
    return innermost


def _layers(value: Any) -> Iterator[Any]:
    """Yield the value, the value it wraps, and so on."""
    seen: set[int] = set()
    while True:
        yield value
        if isinstance(value, functools.partial | types.FunctionType | type):
            return
        inner = getattr(value, "__wrapped__", None) or getattr(value, "func", None)
        if inner is None or not callable(inner) or id(value) in seen:
            return
        seen.add(id(value))
        value = inner


def jit_options(kernel: Any) -> dict[str, Any]:
    """Return the options of a kernel under `nki.jit`: its grid in brackets, schedule, target, and
    NKI version.

    Raises `CompileError`.
    """
    getters = (getattr(layer, "nkic_options", None) for layer in _layers(kernel))
    return next((options() for options in getters if options is not None), {})


def module_of(function: types.FunctionType) -> str:
    """Return the name under which to find the function's source.

    This is its module's name, or its file's if the module is not made of that file alone, as in
    notebooks.
    """
    name = function.__globals__.get("__name__") or function.__module__
    return module_of_code(name, function.__code__)


def module_of_code(name: str, code: types.CodeType) -> str:
    """Return the same for code whose module is called `name`."""
    return name if _is_file(sys.modules.get(name), code.co_filename) else code.co_filename


def module_of_class(value: type) -> str:
    """Return the same for a class."""
    module = sys.modules.get(value.__module__)
    if getattr(module, "__file__", None) is not None:
        return value.__module__
    codes = (getattr(member, "__code__", None) for member in vars(value).values())
    files = [code.co_filename for code in codes if code is not None and _is_cell(code)]
    return files[0] if files else value.__module__


def _is_cell(code: types.CodeType) -> bool:
    return not code.co_filename.startswith("<string>")


def _is_file(module: types.ModuleType | None, file: str) -> bool:
    source = getattr(module, "__file__", None)
    return source is not None and _plain(source) == _plain(file)


def _plain(path: str) -> str:
    return path[:-1] if path.endswith(".pyc") else path


def place(function: types.FunctionType) -> tuple[int, int]:
    """Return the line in which the function begins, and the column of its first instruction."""
    code = function.__code__
    columns = (column for line, _, column, end in code.co_positions() if column and end)
    return code.co_firstlineno, next(columns, 0) + 1


def user_function(function: types.FunctionType) -> types.FunctionType:
    """Return the user's function beneath wrappers from Python's library, such as
    `contextlib.contextmanager`.
    """
    while names.is_host(function.__globals__.get("__name__") or ""):
        inner = getattr(function, "__wrapped__", None)
        if not isinstance(inner, types.FunctionType):
            break
        function = inner
    return function


def is_found_by_name(function: types.FunctionType) -> bool:
    """Whether looking up the function's name in its module gives it, so that its source can be
    found.
    """
    if "<" in function.__qualname__ or module_of(user_function(function)) != function.__module__:
        return False
    is_plain = user_function(function) is function and "." not in function.__qualname__
    if is_plain and (function.__closure__ or vars(function)):
        return False  # a decorator made it, or assignments changed it
    member: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        member = inspect.getattr_static(member, name, None)
    member = getattr(member, "__func__", member)
    return member is function or unwrapped(member) is function


def cells(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the function's free variables with their values; unassigned ones are left out."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def defaults(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that have defaults, with the defaults."""
    code, values = function.__code__, function.__defaults__ or ()
    plain = code.co_varnames[: code.co_argcount]
    yield from zip(plain[len(plain) - len(values) :], values, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def parameters(function: types.FunctionType) -> tuple[str | None, tuple[str, ...]]:
    """Return the name of `**kwargs`, if there is one, and those of all parameters."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    stars = (code.co_flags & inspect.CO_VARARGS != 0) + (
        code.co_flags & inspect.CO_VARKEYWORDS != 0
    )
    names = code.co_varnames[: count + stars]
    return names[-1] if code.co_flags & inspect.CO_VARKEYWORDS else None, names


def kernel(value: Any) -> types.FunctionType:
    """Return the Python function of a kernel. Raises `UsageFailed` if there is none."""
    innermost = unwrapped(value)
    if not isinstance(innermost, types.FunctionType):
        refuse(
            f"a kernel is a Python function, not {type(value).__qualname__}",
            "pass the function, or what nki.jit made of it",
        )
    if innermost.__name__ == "<lambda>":
        refuse("a lambda cannot be a kernel", "define it with `def`")
    return innermost


def names_of(code: types.CodeType) -> Iterator[str]:
    """Yield the global variables and attributes that code names, including nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_of(constant)
