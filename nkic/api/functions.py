"""Functions of the running program: the kernel beneath its wrappers, where its source is, the
values that kernels know by name (element types, packages called nki, Python's own), and how a
kernel is evaluated: traced natively, or in the closed world.

The latter is chosen by `evaluate=` of the call, else NKIC_EVALUATE, else `evaluate` under
`[tool.nkic]` in the pyproject.toml of the working directory or of a parent folder. By default
kernels are traced, unless the `nki` that they use is not nkic's: then only their source can be
evaluated.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import linecache
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from nkic.api.errors import refuse
from nkic.base import files
from nkic.interpret import builtins as kernel_builtins
from nkic.interpret import library
from nkic.machine import dtypes
from nkic.specialise.request import Named

DTYPES = "dtypes"  # stands for a module: NKI's own element types
_NKI = "nki"
_FRAMEWORKS = ("torch", "jax", "jaxlib", "numpy", "ml_dtypes", "scipy", "pandas", "pytest")
_HOSTS = frozenset({*_FRAMEWORKS, "_pytest", "tensorflow", "IPython", "ipykernel", "nkic"})


def named_dtype(value: Any) -> Named | None:
    """Return the name of an element type of NumPy, ml_dtypes, PyTorch, JAX or nkic."""
    if isinstance(value, dtypes.DType):
        return Named(DTYPES, value.name)
    kind = type(value)
    if isinstance(value, np.dtype):
        return _element(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return _element(np.dtype(value).name)
    if kind.__name__ == "dtype" and kind.__module__ == "torch":
        return _element(str(value).removeprefix("torch.").replace("float8_e4m3fnuz", ""))
    if kind.__module__.startswith("jax") and isinstance(getattr(value, "dtype", None), np.dtype):
        return _element(value.dtype.name) if not hasattr(value, "shape") else None
    return None


def _element(name: str) -> Named | None:
    element = dtypes.find(name)
    return Named(DTYPES, element.name) if element is not None else Named("numpy", name)


def named_nki(value: Any) -> Named | None:
    """Return the name of a value from a module called nki, of any package: `nl.add`, a class of
    `nki.isa`.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or hasattr(value, "__wrapped__"):
        return None
    return Named(module_of_nki(module), name) if module_of_nki(module) else None


def module_of_nki(module: str) -> str:
    """Return NKI's name of a module; empty if the module is not NKI's.

    For example `nki.language` for `vendor.nki.language` if `import nki` gives `vendor.nki`.
    """
    posing = getattr(sys.modules.get(_NKI), "__name__", _NKI)
    for root in (_NKI, f"neuronxcc.{_NKI}", posing):
        if module == root or module.startswith(f"{root}."):
            return _NKI + module[len(root) :]
    return ""


def is_host(module: str) -> bool:
    """Whether a module's code is for the host: Python's own, frameworks, tools."""
    root = module.partition(".")[0]
    return root in _HOSTS or (root in sys.stdlib_module_names and root != "__main__")


def is_others(module: str) -> bool:
    return is_host(module) or module == "builtins" or bool(module_of_nki(module))


def is_known_module(module: str) -> bool:
    """Whether kernels may use this module of Python or NumPy."""
    return module in library.modules() or module == "numpy"


def named_python(value: Any) -> Named | None:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module == "builtins":
        return Named(module, name) if name in kernel_builtins.table() else None
    module = str(module).removeprefix("_")  # `operator.add` says that it is of `_operator`
    return Named(module, name) if name in library.modules().get(module, ()) else None


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
    source, file = getattr(sys.modules.get(name), "__file__", None), code.co_filename
    is_file = source is not None and _plain(source) == _plain(file)
    return name if is_file else file


def _plain(path: str) -> str:
    return path[:-1] if path.endswith(".pyc") else path


def module_of_class(value: type) -> str:
    """Return the same for a class."""
    module = sys.modules.get(value.__module__)
    if getattr(module, "__file__", None) is not None:
        return value.__module__
    codes = (getattr(member, "__code__", None) for member in vars(value).values())
    files = (code.co_filename for code in codes if code is not None)
    cells = (file for file in files if not file.startswith("<string>"))
    return next(cells, value.__module__)


def source_lines(path: str) -> list[str]:
    """Return the lines of a file or a notebook's cell, none if they are not known.

    Every string that Python executes is `<string>`: what is kept by that name may be another.
    """
    return linecache.getlines(path) if path != "<string>" else []


def place(function: types.FunctionType) -> tuple[int, int]:
    """Return the line in which the function begins, and the column of its first instruction."""
    code = function.__code__
    columns = (column for line, _, column, end in code.co_positions() if column and end)
    return code.co_firstlineno, next(columns, 0) + 1


def user_function(function: types.FunctionType) -> types.FunctionType:
    """Return the user's function beneath wrappers from Python's library, such as
    `contextlib.contextmanager`.
    """
    while is_host(function.__globals__.get("__name__") or ""):
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
        (files.setting("evaluate"), files.origin("evaluate")),
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
        for name in names_of(function.__code__):
            value = function.__globals__.get(name, _NOTHING)
            if value is _NOTHING:
                if not hasattr(builtins, name) and name in _CUSTOMARY:
                    yield "missing"
                continue
            if _is_nki(value):
                yield "ours" if _is_ours(value) else "foreign"
                continue
            called = unwrapped(value) if callable(value) else None
            if isinstance(called, types.FunctionType) and called not in seen:
                seen.add(called)
                if not is_host(called.__module__ or ""):
                    waiting.append(called)


_NOTHING = object()
_CUSTOMARY = ("nl", "nisa", "nki", "ncc")  # the customary names of NKI's modules in kernels


def _is_nki(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return bool(module_of_nki(value.__name__))
    return named_nki(value) is not None


def _is_ours(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return bool(getattr(value, OURS, False))
    module = sys.modules.get(value.__module__)
    made_in = getattr(value, "__globals__", {}).get("__name__", type(value).__module__)
    return bool(getattr(module, OURS, False)) or made_in.startswith("nkic.")
