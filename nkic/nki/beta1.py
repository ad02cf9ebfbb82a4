"""The modules of Beta 1 for host code: `neuronxcc.nki` and its contents.

Values with a meaning outside kernels keep it; all others take effect only inside a kernel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from nkic.language import provide
from nkic.language.beta1 import ROOT, creation, indices, names, operators
from nkic.language.enums import Operator
from nkic.language.hosted import Decorator
from nkic.language.namespace import Namespace, names_of
from nkic.language.provide import TileSize
from nkic.language.trace import current
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer
from nkic.nki import names as host
from nkic.nki.jit import NeuronCores, SpmdDim, former_jit

# Published kernels write `logging.disable(logging.OFF)`: the vendor's package adds this level,
# whose value is assumed to be above all others.
_NO_LOGGING = logging.CRITICAL + 10
_UNCHANGED = (names.Limits, creation.Sbuf, creation.Psum, Enum, type(None))
_CALLED = (creation.allocation_scope, creation.multi_buffer)


# Index expressions are numbers, which a function that makes a kernel may prepare.
_ANYWHERE: dict[str, Any] = {"arange": indices.arange, "mgrid": indices.MakesGrids()}


class IndexFunction(host.Function):
    """`nl.arange`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        called = _ANYWHERE[self.__name__] if current() is None else super().__call__
        return called(*args, **kwargs)


class Waiting:
    """A subscriptable name of host code, such as `nl.mgrid`, that stands for a kernel's value."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__ = module
        self.__name__ = name

    def __getitem__(self, key: Any) -> Any:
        outside = _ANYWHERE.get(self.__name__) if current() is None else None
        return (outside or self.__nki__())[key]

    def __nki__(self) -> Any:
        """Return its value in the kernel that Python evaluates. Raises `OutsideKernel`
        elsewhere.
        """
        value = host.inside(self.__module__, self.__name__)
        return host.refuse(f"{self.__module__}.{self.__name__}") if value is None else value


@cache
def _spaces() -> dict[str, Namespace]:
    return dict(names.namespaces(provide.TensorAnnotation()))


def contents(module: str, kernels: dict[str, Any]) -> dict[str, Any]:
    space = _spaces()[module]
    values = {name: _value(module, name, getattr(space, name)) for name in names_of(space)}
    if module == f"{ROOT}.nki":
        values |= kernels
        vars(logging).setdefault("OFF", _NO_LOGGING)
    elif module == f"{ROOT}.nki.language":
        values |= {"nc": NeuronCores, "spmd_dim": SpmdDim, "static_cast": static_cast}
    return values


def _value(module: str, name: str, value: Any) -> Any:
    if isinstance(value, Decorator):  # those of `nki` itself are in `kernels`
        return _of_compiler(name) if name in creation.DECORATORS else None
    if isinstance(value, type) and issubclass(value, Enum):
        return host.enumeration("nki.isa", value)
    if isinstance(value, _UNCHANGED) or value in _CALLED:
        return value
    for kind, make in _MAKERS:
        if isinstance(value, kind):
            return make(module, name, value)
    if isinstance(value, type):
        return host.kernel_type(module, name, value.__doc__ or "", value)
    return Waiting(module, name)


def _of_compiler(name: str) -> Callable[..., Any]:
    """Return a decorator of nki.compiler: it makes a kernel of a function, and keeps kernels."""
    check = creation.DECORATORS[name]

    @wraps(check)
    def decorator(func: Any = None, *args: Any, **options: Any) -> Any:
        check(func, *args, **options)
        if func is None:
            return lambda function: decorator(function)
        return former_jit(func) if isinstance(func, FunctionType) else func

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__module__ = f"{ROOT}.nki.compiler"
    return decorator


def _function(module: str, name: str, value: Any) -> Any:
    signature, doc = host.of_function(getattr(value, "_call", value))
    kind = IndexFunction if name in _ANYWHERE else host.Function
    return kind(module, name, signature, doc)


_MAKERS: tuple[tuple[Any, Callable[[str, str, Any], Any]], ...] = (
    (DType, lambda module, name, value: value.name),
    (Buffer, lambda module, name, value: host.region(value)),
    (TileSize, lambda module, name, value: TileSizes()),
    (provide.TensorAnnotation, lambda module, name, value: host.annotation(module, name)),
    (operators.Function | FunctionType, _function),
    (Operator, lambda module, name, value: host.Function(module, name, None, f"`nl.{name}`.")),
)


class TileSizes(host.HostTileSize, names.TileSizes):
    """`nl.tile_size`: sizes of the target that calls are compiled for."""

    __getattribute__ = object.__getattribute__


def static_cast(input_data: Any, dtype: Any) -> Any:
    """Return a copy in another dtype.

    In a kernel it takes a tile; outside, an array, with which tests make their inputs.
    """
    in_kernel = host.inside(f"{ROOT}.nki.language", "static_cast")
    if in_kernel is not None:
        return in_kernel(input_data, dtype)
    if hasattr(input_data, "astype"):
        return input_data.astype(np_dtype(dtype))
    return host.refuse("nki.language.static_cast")


static_cast.__module__ = f"{ROOT}.nki.language"


def np_dtype(dtype: Any) -> Any:
    with suppress(ImportError):
        import_module("ml_dtypes")
    return np.dtype(dtype)
