"""The module `numpy` of the closed world."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from nkic.base.kernel_errors import Missing
from nkic.evaluate.modules import Table
from nkic.evaluate.objects import Builtin, Class, Getter, seal
from nkic.evaluate.tables import OBJECT
from nkic.language.library import as_function
from nkic.specialise.numpy import functions, values
from nkic.specialise.numpy.values import NumpyDType, element_type, host, raw, wrapped

_ADVICE = "kernels can use NumPy's numbers, types and functions of arrays; tensors have `nl`"
_NUMBERS = ("pi", "e", "inf", "nan")
_DATA = frozenset({"random", "save", "load", "fromfile", "loadtxt"})


class NumpyTable(Table):
    """The module, with help for missing names."""

    def missing(self, name: str) -> Exception:
        """Return the error for a name that does not exist."""
        if name in _DATA:
            help = "pass the data to the kernel as an argument"
            text = f"`numpy.{name}` is not available in kernel code"
            return Missing("host-module", text, name, help)
        error = super().missing(name)
        instead = as_function(name)
        if isinstance(error, Missing) and instead:
            error.help = f"for tensors, use NKI's function: {instead}"
        return error


class Limits:
    """`np.finfo` or `np.iinfo` of a type."""

    def __init__(self, limits: Any) -> None:
        self._limits = limits

    def __repr__(self) -> str:
        return repr(self._limits)


_OF_FLOATS = ["dtype", "bits", "min", "max", "eps", "tiny", "smallest_normal", "smallest_subnormal"]
_LIMITS = Class("limits", (OBJECT,), {}, payload=Limits, module="numpy")


def _limit(name: str) -> Getter:
    return Getter(name, lambda m, owner: wrapped(getattr(owner._limits, name)))


_LIMITS.members |= {name: _limit(name) for name in _OF_FLOATS}


def _limits(name: str) -> Builtin:
    def limits(m: Any, dtype: Any, /) -> Limits:
        np = host()
        kind = getattr(dtype, "dtype", dtype) if isinstance(dtype, values.Scalar) else dtype
        return Limits(getattr(np, name)(element_type(kind)))

    return Builtin(name, limits)


def _dtype(m: Any, dtype: Any, /) -> Any:
    return wrapped(element_type(dtype))


@cache
def table() -> NumpyTable:
    """Return the module `numpy`."""
    contents: dict[str, Any] = {name: getattr(math, name) for name in _NUMBERS}
    contents |= {**functions.FUNCTIONS, **values.ABSTRACT, **values.TYPES}
    contents |= {name: values.TYPES[same] for name, same in values.ALIASES.items()}
    contents |= {"ndarray": functions.ARRAY, "newaxis": None}
    contents |= {"dtype": Builtin("dtype", _dtype)}
    contents |= {name: _limits(name) for name in ("finfo", "iinfo")}
    return NumpyTable("numpy", contents, _ADVICE)


@cache
def classes() -> dict[type, Class]:
    """Return the classes of NumPy's values."""
    dtype = Class("dtype", (OBJECT,), {}, payload=NumpyDType, module="numpy")
    dtype.members |= {
        "name": Getter("name", lambda m, owner: owner.name),
        "type": Getter("type", lambda m, owner: owner),
        **{name: Getter(name, _of_dtype(name)) for name in ("itemsize", "kind", "char", "str")},
    }
    function = Class("ufunc", (OBJECT,), {}, payload=functions.Function, module="numpy")
    function.members["__name__"] = Getter("__name__", lambda m, owner: owner.name)
    kinds = (*values.CLASSES.values(), functions.ARRAY, dtype, function, _LIMITS)
    for cls in (*kinds, *values.ABSTRACT.values()):
        seal(cls)
    return {cls.payload: cls for cls in kinds}


def _of_dtype(name: str) -> Callable[[Any, NumpyDType], Any]:
    return lambda m, owner: getattr(raw(owner), name)


def callers() -> dict[type, Callable[..., Any]]:
    """Return the functions by which the machine calls such values."""
    return {
        functions.Function: functions.call,
        NumpyDType: lambda m, dtype, args, named: values.number(dtype, args),
    }
