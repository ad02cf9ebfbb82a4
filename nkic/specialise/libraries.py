"""Modules of Python that kernels may import, as far as they make compile-time values.

`math`, `numpy` (numbers, names of types, makers of arrays), `typing`, `dataclasses`, `enum`,
`functools`, `abc`, and of `os` and `sys` what logging helpers look at: a kernel's environment
is empty, because its code depends on its arguments alone.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping
from itertools import islice
from operator import index
from typing import Any, ClassVar, NamedTuple

from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.specialise import kernel_enums, objects
from nkic.specialise.arrays import makers
from nkic.specialise.budget import Budget
from nkic.specialise.guards import Guards
from nkic.specialise.namespace import Absent, Namespace
from nkic.specialise.objects import Decorator

_PLAIN_MATH = (
    *("ceil", "floor", "trunc", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2"),
    *("log10", "log1p", "fabs", "fmod", "modf", "frexp", "copysign", "remainder"),
    *("degrees", "radians", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma"),
    *("lgamma", "isnan", "isinf", "isfinite", "isclose", "ulp", "nextafter"),
    *("pi", "e", "tau", "inf", "nan"),
)
_COUNTING = ("factorial", "comb", "perm")
_SEVERAL = ("gcd", "lcm", "hypot", "isqrt")
_OF_SEQUENCES = ("dist", "fsum")


def libraries(budget: Budget, guards: Guards) -> dict[str, Namespace]:
    """Every such module by name."""
    made = [
        Namespace("math", _math(budget, guards)),
        Namespace("numpy", _numpy(budget, guards), _NO_ARRAYS, advice=_NUMPY),
        Namespace("typing", _typing()),
        Namespace("typing_extensions", _typing()),
        Namespace("collections.abc", {name: Form(name) for name in _ABCS}),
        Namespace("dataclasses", _dataclasses()),
        Namespace("enum", _enum()),
        Namespace("functools", _functools()),
        Namespace("abc", {"ABC": Form("ABC"), "abstractmethod": _same("abstractmethod")}),
        Namespace("os", {"environ": {}}, advice=_NO_SYSTEM),
        Namespace("sys", _SYS, advice=_NO_SYSTEM),
        Namespace("__future__", {}),
    ]
    return {module.__dict__["@name"]: module for module in made}


PROVIDED = (
    *("math", "numpy", "typing", "typing_extensions", "collections.abc", "dataclasses", "enum"),
    *("functools", "abc", "os", "sys", "__future__"),
)


_NO_SYSTEM = "pass settings as arguments: a kernel's code depends on nothing else"
_SYS = {"stdout": None, "stderr": None, "maxsize": (1 << 63) - 1}


# ---- math ---------------------------------------------------------------------------------------


def _math(budget: Budget, guards: Guards) -> dict[str, Any]:
    found = {name: getattr(math, name) for name in _PLAIN_MATH}
    found |= {name: _counting(getattr(math, name), budget) for name in _COUNTING}
    found |= {name: _several(getattr(math, name), guards, budget) for name in _SEVERAL}
    found |= {name: _of_sequences(getattr(math, name), budget) for name in _OF_SEQUENCES}
    found["pow"] = math.pow
    found["ldexp"] = math.ldexp
    found["prod"] = lambda values, *, start=1: _product(guards, values, start)
    return found


def _counting(function: Callable[..., int], budget: Budget) -> Callable[..., int]:
    """Factorials and the like, of numbers whose result is an integer of usual size."""

    def call(*numbers: Any) -> int:
        found = (index(number) for number in numbers if hasattr(number, "__index__"))
        largest = max(found, default=0)
        budget.allow_bits(largest * max(largest, 1).bit_length())
        budget.copied(largest)
        return function(*numbers)

    return call


def _several(function: Callable[..., Any], guards: Guards, budget: Budget) -> Callable[..., Any]:
    """Divisors and multiples: of long integers they take the square of the length."""

    def call(*numbers: Any) -> Any:
        if function is math.lcm:
            _product(guards, numbers, 1)  # no larger than this
        bits = sum(number.bit_length() for number in numbers if isinstance(number, int))
        budget.charge(len(numbers) + (bits >> 6) * (bits >> 6) >> 5)
        return function(*numbers)

    return call


def _of_sequences(function: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    def call(*sequences: Any) -> Any:
        found = [list(values) for values in sequences]
        budget.copied(sum(map(len, found)))
        return function(*found)

    return call


def _product(guards: Guards, values: Any, start: Any) -> Any:
    result = start
    for value in values:
        result = guards.multiply(result, value)
    return result


# ---- numpy --------------------------------------------------------------------------------------

_ARRAYS = (
    *("empty", "linspace", "tile", "repeat", "concatenate", "stack", "where", "random"),
    *("save", "load"),
)
_NUMPY = "of NumPy, kernels have numbers and names of types; for tensors there are `nl` and `nisa`"
_NO_ARRAYS = {
    name: Absent(
        "host-module",
        f"kernels have no `numpy.{name}`",
        "pass the data to the kernel, use a list of numbers, or make a tensor with `nl`",
    )
    for name in _ARRAYS
}
_OTHER_TYPES = ("float64", "int64", "uint64", "complex64", "complex128", "longdouble")
_SHARED_TYPES = ("float32", "float16", "int32", "int16", "int8", "uint32", "uint16", "uint8")


@dataclasses.dataclass(frozen=True)
class OtherType:
    """An element type of NumPy that no Trainium engine has."""

    name: str

    def __repr__(self) -> str:
        return self.name


class NumpyFloat(float):
    """A float that also answers as NumPy's do."""

    def item(self) -> float:
        """The plain float."""
        return float(self)


class FloatLimits(NamedTuple):
    """`np.finfo` of a type."""

    dtype: Any
    bits: int
    min: NumpyFloat
    max: NumpyFloat
    eps: NumpyFloat
    tiny: NumpyFloat
    smallest_normal: NumpyFloat
    smallest_subnormal: NumpyFloat


class IntLimits(NamedTuple):
    """`np.iinfo` of a type."""

    dtype: Any
    bits: int
    min: int
    max: int


def _numpy(budget: Budget, guards: Guards) -> dict[str, Any]:
    types: dict[str, Any] = {name: OtherType(name) for name in _OTHER_TYPES}
    types |= {name: dtypes.DTYPES[name] for name in _SHARED_TYPES}
    numbers = {name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "exp", "pi", "e")}
    more = {name: getattr(math, name) for name in ("log", "log2", "log10", "inf", "nan")}
    calls = {
        "prod": lambda values: _product(guards, values, 1),
        "finfo": _finfo,
        "iinfo": _iinfo,
        "abs": abs,
        "minimum": lambda one, two: min(guards.nesting.all_compared((one, two))),
        "maximum": lambda one, two: max(guards.nesting.all_compared((one, two))),
        "dtype": lambda value: value,
        "ndarray": Form("ndarray"),
        "newaxis": None,
        "bool_": dtypes.DTYPES["bool"],
    }
    return {**types, **numbers, **more, **calls, **makers(budget, guards.nesting)}


def _finfo(dtype: Any) -> FloatLimits:
    found = _as_dtype(dtype)
    if found is None or not found.is_float:
        raise ValueError(f"data type {dtype} not inexact")
    least = 2.0 ** (1 - found.bias)
    values = (found.lowest, found.highest, 2.0**-found.mantissa_bits, least, least)
    shown = [NumpyFloat(value) for value in (*values, found.smallest)]
    return FloatLimits(found, found.bits, *shown)


def _iinfo(dtype: Any) -> IntLimits:
    found = _as_dtype(dtype)
    if found is None or not found.is_integer:
        raise ValueError(f"Invalid integer data type {dtype}.")
    return IntLimits(found, found.bits, int(found.lowest), int(found.highest))


def _as_dtype(value: Any) -> DType | None:
    return value if isinstance(value, DType) else dtypes.find(str(value))


# ---- typing and the rest ------------------------------------------------------------------------


class Form:
    """What stands in annotations. Nothing is ever checked against it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getitem__(self, parameters: Any) -> Form:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Form:
        return self

    def __or__(self, other: Any) -> Form:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return self.__name__


_FORMS = (
    *("Any", "Optional", "Union", "List", "Tuple", "Dict", "Set", "FrozenSet", "Type", "Callable"),
    *("Sequence", "Iterable", "Iterator", "Mapping", "Literal", "Final", "ClassVar", "Annotated"),
    *("Generic", "Protocol", "TypeVar", "TypeAlias", "NewType", "Self", "Never", "NoReturn"),
    *("Generator", "Hashable", "Sized", "Collection", "MutableMapping", "MutableSequence"),
    *("ParamSpec", "Concatenate", "TypeGuard", "Unpack", "TypedDict", "SupportsInt"),
)
_ABCS = (
    *("Callable", "Collection", "Generator", "Hashable", "Iterable", "Iterator", "Mapping"),
    *("MutableMapping", "MutableSequence", "Sequence", "Set", "Sized"),
)


def _same(name: str) -> Decorator:
    """A decorator that leaves what it decorates as it is."""
    return Decorator(name, lambda target, **_: target)


def _typing() -> dict[str, Any]:
    found: dict[str, Any] = {name: Form(name) for name in _FORMS}
    return found | {
        "NamedTuple": NamedTuple,
        "TYPE_CHECKING": False,
        "cast": lambda kind, value: value,
        "overload": _same("overload"),
        "final": _same("final"),
        "override": _same("override"),
        "runtime_checkable": _same("runtime_checkable"),
    }


def _dataclasses() -> dict[str, Any]:
    return {
        "dataclass": Decorator("dataclass", objects.dataclass),
        "field": dataclasses.field,
        "fields": dataclasses.fields,
        "replace": dataclasses.replace,
        "asdict": objects.as_dict,
        "astuple": objects.as_tuple,
        "is_dataclass": dataclasses.is_dataclass,
        "KW_ONLY": dataclasses.KW_ONLY,
        "InitVar": dataclasses.InitVar,
        "FrozenInstanceError": dataclasses.FrozenInstanceError,
    }


def _enum() -> dict[str, Any]:
    return {**kernel_enums.KINDS, "auto": enum.auto, "unique": Decorator("unique", enum.unique)}


def _functools() -> dict[str, Any]:
    return {"partial": objects.partial, "reduce": _reduce}


def _reduce(function: Any, values: Any, *initial: Any) -> Any:
    remaining = iter(values)
    if not initial:
        initial = tuple(islice(remaining, 1))
    if not initial:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = initial[0]
    for value in remaining:
        result = function(result, value)
    return result


# What the translation puts in place of a field's annotation in a class body.
FIELD_MARKERS: Mapping[str, Any] = {
    "@any": object,
    "@classvar": ClassVar,
    "@initvar": dataclasses.InitVar,
    "@kwonly": dataclasses.KW_ONLY,
}
