"""NumPy in the closed world: numbers, names of types, constructors of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from nkic.base.kernel_errors import Missing
from nkic.evaluate.border import admit
from nkic.evaluate.classes import TypingForm
from nkic.evaluate.modules import Table
from nkic.evaluate.objects import Builtin, Class, Getter, HostFunction
from nkic.evaluate.operators import OPERATIONS
from nkic.evaluate.tables import OBJECT, builtin
from nkic.language.enums import OPERATORS, Operator
from nkic.language.library import as_function
from nkic.language.tensors.arrays import makers
from nkic.language.texts import brief
from nkic.machine import dtypes
from nkic.machine.dtypes import DType

_ADVICE = "kernels can use only NumPy's numbers and types; for tensors there are `nl` and `nisa`"
_ARRAYS = frozenset(
    {
        *("empty", "linspace", "tile", "repeat", "concatenate", "stack", "where", "random"),
        *("save", "load"),
    }
)
_OTHER_TYPES = ("float64", "uint64", "complex64", "complex128", "longdouble")
_SHARED_TYPES = (
    *("float32", "float16", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
)
_SAME_TYPES = {"half": "float16", "single": "float32", "double": "float64", "intc": "int32"}
_NUMBERS = ("pi", "e", "inf", "nan")
_FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10")


@dataclass(frozen=True)
class OtherType:
    """A NumPy element type that no Trainium engine supports."""

    name: str

    def __repr__(self) -> str:
        return self.name


class NumpyFloat(float):
    """A float with the methods of NumPy's."""

    def __repr__(self) -> str:
        return float.__repr__(self)


class FloatLimits(NamedTuple):
    """`np.finfo` of a dtype."""

    dtype: Any
    bits: int
    min: NumpyFloat
    max: NumpyFloat
    eps: NumpyFloat
    tiny: NumpyFloat
    smallest_normal: NumpyFloat
    smallest_subnormal: NumpyFloat


class IntLimits(NamedTuple):
    """`np.iinfo` of a dtype."""

    dtype: Any
    bits: int
    min: int
    max: int


class NumpyTable(Table):
    """The module, with help for missing names that make arrays."""

    def missing(self, name: str) -> Exception:
        """Return the error for a name that does not exist."""
        if name not in _ARRAYS:
            return self._unknown(name)
        help = "pass the data to the kernel, use a list of numbers, or make a tensor with `nl`"
        return Missing("host-module", f"`numpy.{name}` is not available in kernel code", name, help)

    def _unknown(self, name: str) -> Exception:
        error = super().missing(name)
        instead = as_function(name)
        if isinstance(error, Missing) and instead:
            error.help = f"for tensors, use NKI's function: {instead}"
        return error


@cache
def table() -> NumpyTable:
    """Return the module `numpy`."""
    contents: dict[str, Any] = {name: OtherType(name) for name in _OTHER_TYPES}
    contents |= {name: dtypes.DTYPES[name] for name in _SHARED_TYPES}
    contents |= {name: getattr(math, name) for name in _NUMBERS}
    contents |= {name: HostFunction(name, getattr(math, name)) for name in _FUNCTIONS}
    contents |= {name: HostFunction(name, partial(_rounded, name)) for name in ("ceil", "floor")}
    contents |= {"ndarray": TypingForm("ndarray"), "newaxis": None}
    contents |= dict.fromkeys(("bool", "bool_"), dtypes.DTYPES["bool"])
    contents |= {"finfo": HostFunction("finfo", _finfo), "iinfo": HostFunction("iinfo", _iinfo)}
    contents |= {name: contents[type_] for name, type_ in _SAME_TYPES.items()}
    contents["dtype"] = HostFunction("dtype", _dtype)
    _add_functions(contents)
    return NumpyTable("numpy", contents, _ADVICE)


@cache
def with_operators() -> NumpyTable:
    """Return the module for kernels of Beta 1, which use `np.add` as an operator, like `nl.add`."""
    contents = table().contents
    operators = {name: OPERATORS[name] for name in OPERATORS if name not in contents}
    same = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"}
    operators |= {name: OPERATORS[instead] for name, instead in same.items()}
    operators |= {"sum": OPERATORS["add"], "divide": Operator("divide"), "mod": Operator("mod")}
    return NumpyTable("numpy", {**contents, **operators}, _ADVICE)


@cache
def classes() -> dict[type, Class]:
    """Return the classes of NumPy's values."""
    limits = (OtherType, FloatLimits, IntLimits)
    result: dict[type, Class] = {kind: _fields(kind) for kind in limits}
    item = Builtin("item", lambda m, owner: float(owner))
    result[NumpyFloat] = Class("float64", (OBJECT,), {"item": item}, payload=NumpyFloat)
    return result


def _fields(kind: Any) -> Class:
    names = getattr(kind, "_fields", ("name",))
    members = {name: _getter(name) for name in names}
    return Class(kind.__name__, (OBJECT,), members, payload=kind)


def _getter(name: str) -> Getter:
    return Getter(name, lambda m, owner: getattr(owner, name))


def _add_functions(contents: dict[str, Any]) -> None:
    @builtin("prod", contents)
    def prod(m: Any, values: Any) -> Any:
        result: Any = 1
        for value in m.to_list(values):
            result = OPERATIONS["*"](m, result, value)
        return result

    @builtin("minimum", contents)
    def minimum(m: Any, first: Any, second: Any, /) -> Any:
        return second if m.less(second, first) else first

    @builtin("maximum", contents)
    def maximum(m: Any, first: Any, second: Any, /) -> Any:
        return second if m.less(first, second) else first

    @builtin("abs", contents)
    def absolute(m: Any, value: Any, /) -> Any:
        return abs(value)

    for name in makers(lambda count: None):
        contents[name] = Builtin(name, _maker(name))


def _maker(name: str) -> Callable[..., Any]:
    def make(m: Any, *args: Any, **named: Any) -> Any:
        admit(m, (*args, *named.values()))

        def allow(count: int) -> None:
            m.elements(count, "the array")

        return makers(allow)[name](*args, **named)

    return make


def _rounded(name: str, value: float) -> float:
    """`np.ceil` and `np.floor`, which return floats, unlike those of `math`."""
    return float(getattr(math, name)(value)) if math.isfinite(value) else float(value)


def _dtype(value: Any) -> Any:
    """Return the type that `value` is or names: `np.dtype("i8")` is int64, unlike `nl`'s i8."""
    if not isinstance(value, str):
        return value
    code = value.lstrip("<=|")
    name = _SAME_TYPES.get(code) or _of_code(code)
    if name in _OTHER_TYPES:
        return OtherType(name)
    if name not in dtypes.DTYPES:
        raise TypeError(f"data type {brief(value)} not understood")
    return dtypes.DTYPES[name]


def _of_code(code: str) -> str:
    """Return the type's name for codes such as `f4` (four bytes); the code if it is none."""
    kinds, sizes = {"f": "float", "i": "int", "u": "uint", "c": "complex"}, "1248"
    if len(code) == 2 and code[0] in kinds and code[1] in sizes:
        return f"{kinds[code[0]]}{int(code[1]) * 8}"
    return {"?": "bool", "b1": "bool", "c16": "complex128"}.get(code, code)


def _finfo(dtype: Any) -> FloatLimits:
    kind = _as_dtype(dtype)
    if kind is None or not kind.is_float:
        raise ValueError(f"data type {brief(dtype)} not inexact")
    smallest = 2.0 ** (1 - kind.bias)
    values = (kind.lowest, kind.highest, 2.0**-kind.mantissa_bits, smallest, smallest)
    shown = [NumpyFloat(value) for value in (*values, kind.smallest)]
    return FloatLimits(kind, kind.bits, *shown)


def _iinfo(dtype: Any) -> IntLimits:
    kind = _as_dtype(dtype)
    if kind is None or not kind.is_integer:
        raise ValueError(f"Invalid integer data type {brief(dtype)}.")
    return IntLimits(kind, kind.bits, int(kind.lowest), int(kind.highest))


def _as_dtype(value: Any) -> DType | None:
    if isinstance(value, DType):
        return value
    return dtypes.find(value) if isinstance(value, str) else None
