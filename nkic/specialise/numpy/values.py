"""NumPy's numbers, arrays and types as values of the closed world.

NumPy itself computes, so that a kernel gets the numbers that it gets where Python evaluates it. A
value of NumPy's is held in an object of a class below, and a kernel reaches only what the table of
that class lists. The operands are checked and the result is paid for before NumPy is called: it
sees numbers, its own values, lists of both, and tensors, which refuse by NumPy's own protocol.
NumPy is imported when a kernel first computes with it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.evaluate.objects import Builtin, Class, Getter, active
from nkic.evaluate.operators import OPERATIONS, SEQUENCES
from nkic.evaluate.tables import OBJECT
from nkic.evaluate.types.numbers import FLOAT
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.texts import brief
from nkic.machine.dtypes import DTYPES, DType

STEPS_PER_ELEMENT = 4  # an element has at most 8 bytes, and most functions make a copy on the way
_STEPS_PER_LIST = 16
_STEPS_PER_TEXT = 16
_DEEPEST = 64  # dimensions of an array
_NUMBERS = (int, float, bool)
_KINDS = "biuf"


def host() -> Any:
    """Return NumPy, which most kernels do not need."""
    import numpy

    return numpy


class NumpyDType:
    """A NumPy element type: `np.float32` itself, and `array.dtype`.

    Like those of all frameworks, it is recognised by its module (`machine.dtypes.element`).
    """

    __slots__ = ("name",)
    __module__ = "numpy"
    is_form = True  # in annotations: `np.float32 | None`

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def numpy(self) -> Any:
        """NumPy's own object. Raises `KernelError` if it comes from a package that is missing."""
        np = host()
        try:
            known = DTYPES.get(self.name)
            return np.dtype(self.name) if known is None else known.dtype
        except TypeError:
            text = f"NumPy has no element type {self.name} unless ml_dtypes is installed"
            raise KernelError("unknown-dtype", text, help="install the package ml_dtypes") from None

    def accepts(self, m: Any, value: Any) -> bool:
        """Return `isinstance(value, np.float32)`."""
        return bool(m.class_of(value) is CLASSES.get(self.name))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumpyDType | DType):
            return self.name == other.name
        return isinstance(other, str) and self.name == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


class NotANumber(KernelError):
    """A value of the kernel that NumPy cannot compute with."""


def _operands(function: Callable[..., Any], reflected: bool) -> Callable[[Any, Any], Any]:
    multiplies = function is operator.mul

    def apply(self: Any, other: Any) -> Any:
        if isinstance(other, NkiTensor):
            return NotImplemented
        if multiplies and isinstance(other, SEQUENCES) and isinstance(self, Scalar):
            return OPERATIONS["*"](active(), other, operator.index(self))
        try:
            value = raw(other)
        except NotANumber:
            return NotImplemented
        pair = (value, raw(self)) if reflected else (raw(self), value)
        return computed(function, *pair)

    return apply


class _Operators:
    """Python's operators, as NumPy computes them."""

    __slots__ = ()

    def __neg__(self) -> Any:
        return computed(operator.neg, raw(self))

    def __pos__(self) -> Any:
        return computed(operator.pos, raw(self))

    def __invert__(self) -> Any:
        return computed(operator.invert, raw(self))

    def __abs__(self) -> Any:
        return computed(operator.abs, raw(self))

    def __bool__(self) -> bool:
        return bool(raw(self))

    def __int__(self) -> int:
        return int(raw(self))

    def __float__(self) -> float:
        return float(raw(self))

    def __index__(self) -> int:
        return operator.index(raw(self))

    def __round__(self, ndigits: Any = None) -> Any:
        value = raw(self)
        return wrapped(round(value) if ndigits is None else round(value, ndigits))

    def __format__(self, spec: str) -> str:
        return format(_shown(self), spec)

    def __repr__(self) -> str:
        return repr(_shown(self))

    def __str__(self) -> str:
        return str(_shown(self))

    def __hash__(self) -> int:
        return hash(raw(self))


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_BITS = ("lshift", "rshift", "and", "or", "xor")
for _name in (*BINARY, *_BITS):
    _function = getattr(operator, f"__{_name}__")
    setattr(_Operators, f"__{_name}__", _operands(_function, False))
    setattr(_Operators, f"__r{_name}__", _operands(_function, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(_Operators, f"__{_name}__", _operands(getattr(operator, _name), False))
# The loop above replaced __eq__ after the class had been made, so that __hash__ stays.


class Scalar(_Operators):
    """A number of NumPy's, other than float64."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __nki__(self) -> Any:
        """Return the number that the language computes with."""
        return self._value.item()


class Float64(_Operators, float):
    """`np.float64`, which is also a float of Python's."""

    __slots__ = ()


class Array(_Operators):
    """An array of NumPy's, with items of its own: a kernel may write them."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]
    holds_array = True

    def __init__(self, value: Any) -> None:
        self._value = value

    def __nki__(self) -> Any:
        """Return NumPy's array, which the language reads as data; a number if it has no axes."""
        return self._value if self._value.ndim else self._value.item()

    def __len__(self) -> int:
        return len(self._value)

    def __contains__(self, item: Any) -> bool:
        return bool(computed(operator.contains, self._value, raw(item)))

    def __iter__(self) -> Iterator[Any]:
        return map(wrapped, self._value)


# ---- conversion ---------------------------------------------------------------------------------


def raw(value: Any, depth: int = 0) -> Any:
    """Return what NumPy gets for a kernel's value. Raises `NotANumber` for one it cannot have."""
    kind = value.__class__
    if kind in _NUMBERS or value is None or value is Ellipsis:
        return value
    if kind is Array or isinstance(value, Scalar):
        return value._value
    if kind is Float64:
        np = host()
        return np.float64(float.__float__(value))
    if kind is NumpyDType or kind is DType:
        return value.numpy if kind is NumpyDType else NumpyDType(value.name).numpy
    if isinstance(value, NkiTensor):
        return value
    if kind is slice:
        return slice(*(raw(part) for part in (value.start, value.stop, value.step)))
    if (kind is list or kind is tuple or kind is range) and depth < _DEEPEST:
        active().charge(_STEPS_PER_LIST + STEPS_PER_ELEMENT * len(value))
        return (tuple if kind is tuple else list)(raw(part, depth + 1) for part in value)
    if isinstance(value, int | float) and not isinstance(value, bool):  # of a class of the kernel
        return (int if isinstance(value, int) else float)(value)
    what = "lists nested this deep" if isinstance(value, list | tuple) else brief(value)
    raise NotANumber(
        "argument-kind",
        f"NumPy cannot compute with {what}",
        help="NumPy in a kernel computes with numbers, lists of numbers and its own arrays",
    )


def _shown(value: Any) -> Any:
    """Return NumPy's value of one that is printed; at most a thousand elements are, each alone."""
    own = raw(value)
    if own.__class__ is host().ndarray:
        with suppress(IndexError):  # nothing is evaluated: a message is written
            active().left -= _STEPS_PER_TEXT * (20 + min(own.size, 1000))
    return own


def wrapped(result: Any) -> Any:
    """Return the kernel's value for a result of NumPy's."""
    np = host()
    if isinstance(result, np.ndarray | np.generic):
        if result.dtype.kind not in _KINDS and result.dtype.name not in _EXTENDED:
            raise TypeError(f"arrays of {result.dtype} are not supported")
        if isinstance(result, np.ndarray):
            return Array(result)
        if result.dtype == np.float64:
            return Float64(result)
        return SCALARS[result.dtype.name](result)
    if isinstance(result, np.dtype):
        return NumpyDType(result.name)
    if isinstance(result, list | tuple):
        return type(result)(map(wrapped, result))
    return result


_EXTENDED = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3"})


def computed(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return the result of an elementwise function, whose size its arguments determine."""
    np = host()
    shapes = [np.shape(arg) for arg in args if not isinstance(arg, NkiTensor)]
    pay(prod(np.broadcast_shapes(*shapes)))
    return wrapped(quietly(function, *args, **named))


def pay(elements: int) -> None:
    """Spend the steps of an array of this size before it is made."""
    active().charge(STEPS_PER_ELEMENT * max(elements, 0))


def quietly(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a function of NumPy's without its warnings about overflow and division by zero."""
    np = host()
    with np.errstate(all="ignore"):
        return function(*args, **named)


# ---- classes ------------------------------------------------------------------------------------


def _method(name: str) -> Builtin:
    special: Callable[..., Any] = getattr(_Operators, name)
    return Builtin(name, lambda m, owner, *args: special(owner, *args))


def _getter(name: str) -> Getter:
    return Getter(name, lambda m, owner: wrapped(getattr(raw(owner), name)))


GENERIC = Class("generic", (OBJECT,), {}, module="numpy")
GENERIC.members |= {
    name: _method(name) for name in ("__abs__", "__int__", "__float__", "__index__", "__round__")
}
GENERIC.members |= {name: _getter(name) for name in ("dtype", "ndim", "shape", "size", "itemsize")}
GENERIC.members["item"] = Builtin("item", lambda m, owner: raw(owner).item())
GENERIC.members["astype"] = Builtin(
    "astype", lambda m, owner, dtype: computed(raw(owner).astype, element_type(dtype))
)
NUMBER = Class("number", (GENERIC,), {}, module="numpy")
INTEGER = Class("integer", (NUMBER,), {}, module="numpy")
FLOATING = Class("floating", (NUMBER,), {}, module="numpy")
_SIGNED = Class("signedinteger", (INTEGER,), {}, module="numpy")
_UNSIGNED = Class("unsignedinteger", (INTEGER,), {}, module="numpy")
ABSTRACT = {cls.name: cls for cls in (GENERIC, NUMBER, INTEGER, FLOATING, _SIGNED, _UNSIGNED)}
TYPES = {
    name: NumpyDType(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
}
_BASES = {"b": GENERIC, "i": _SIGNED, "u": _UNSIGNED, "f": FLOATING}
SCALARS: dict[str, type] = {
    name: type(name, (Scalar,), {"__slots__": ()})
    for name in (*TYPES, *_EXTENDED)
    if name != "float64"
}
CLASSES: dict[str, Class] = {
    name: Class(name, (_BASES[name[0]],), {}, payload=kind, module="numpy")
    for name, kind in SCALARS.items()
}
CLASSES["float64"] = Class("float64", (FLOATING, FLOAT), {}, payload=Float64, module="numpy")
ALIASES = {
    **{"half": "float16", "single": "float32", "double": "float64", "bool_": "bool"},
    **{"intc": "int32", "int_": "int64", "uintc": "uint32", "byte": "int8", "ubyte": "uint8"},
    **{"short": "int16", "ushort": "uint16", "longlong": "int64", "uint": "uint64"},
}


_CODE = re.compile(r"[iu][1248]|f[248]|b1|\?")  # kind and bytes


def element_type(value: Any) -> Any:
    """Return NumPy's object for a type, its name or its code. Raises `TypeError`."""
    np = host()
    if isinstance(value, str):
        code = value.lstrip("<=|")
        name = ALIASES.get(code, code)
        if name not in SCALARS and name not in TYPES and not _CODE.fullmatch(code):
            raise TypeError(f"data type {brief(value)} not understood")
        return NumpyDType(name).numpy
    if value is None or isinstance(value, NumpyDType | DType):
        return raw(value)
    names = {FLOAT: "float64"}
    machine = active()
    names |= {machine.builtins["int"]: "int64", machine.builtins["bool"]: "bool"}
    if isinstance(value, Class) and value in names:
        return np.dtype(names[value])
    raise TypeError(f"{brief(value)} is not a data type of NumPy's")


def number(dtype: NumpyDType, args: tuple[Any, ...]) -> Any:
    """Return `np.float32(x)`: a number of this type, or an array of numbers."""
    if len(args) > 1:
        raise TypeError(f"{dtype.name}() takes at most 1 argument ({len(args)} given)")
    kind = dtype.numpy.type
    if not args:
        return wrapped(kind())
    return computed(kind, raw(args[0]))
