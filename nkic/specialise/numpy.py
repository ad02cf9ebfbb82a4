"""NumPy's numbers, arrays and types as values of the closed world.

NumPy itself computes, so that a kernel gets the numbers that it gets where Python evaluates it. A
value of NumPy's is held in an object of a class below, and a kernel reaches only what the table of
that class lists. The operands are checked and the result is paid for before NumPy is called: it
sees numbers, its own values, lists of both, and tensors, which refuse by NumPy's own protocol.
NumPy is imported when a kernel first computes with it.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

from nkic.base.device import Identical, KernelError, Missing
from nkic.interpret.modules import Table
from nkic.interpret.objects import Builtin, Class, Getter, active, seal
from nkic.interpret.operators import OPERATIONS, SEQUENCES
from nkic.interpret.tables import OBJECT
from nkic.interpret.types.numbers import FLOAT
from nkic.language.hosted import brief
from nkic.language.library import as_function
from nkic.language.tensor import NkiTensor
from nkic.language.views import volume
from nkic.machine.dtypes import DTYPES, DType
from nkic.source.bindings import words

STEPS_PER_CALL = 200  # of NumPy, however small its arrays
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
            return OPERATIONS["*"](active(), other, operator.index(raw(self)))
        try:
            value = raw(other)
        except NotANumber:
            return NotImplemented
        pair = (value, raw(self)) if reflected else (raw(self), value)
        return computed(function, *pair)

    return apply


def _of_one(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: computed(function, raw(self))


def _plainly(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: function(raw(self))


class _Operators:
    """Python's operators, as NumPy computes them."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """NumPy's own, which decides what Beta 1's operators on a tile and a number return."""
        return raw(self).dtype

    def __round__(self, ndigits: Any = None) -> Any:
        value = raw(self)
        return wrapped(round(value) if ndigits is None else round(value, ndigits))

    def __format__(self, spec: str) -> str:
        return format(_shown(self), spec)

    def __repr__(self) -> str:
        return repr(_shown(self))

    def __str__(self) -> str:
        return str(_shown(self))


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_BITS = ("lshift", "rshift", "and", "or", "xor")
for _name in (*BINARY, *_BITS):
    _function = getattr(operator, f"__{_name}__")
    setattr(_Operators, f"__{_name}__", _operands(_function, False))
    setattr(_Operators, f"__r{_name}__", _operands(_function, True))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(_Operators, f"__{_name}__", _of_one(getattr(operator, _name)))
for _function in (bool, int, float, hash, operator.index):
    setattr(_Operators, f"__{_function.__name__}__", _plainly(_function))
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
    """Return NumPy's value of one that is printed: of more than a thousand, six on each axis."""
    own = raw(value)
    if own.__class__ is host().ndarray:
        shown = own.size if own.size <= 1000 else prod(min(size, 7) for size in own.shape)
        with suppress(IndexError):  # nothing is evaluated: a message is written
            active().charge(_STEPS_PER_TEXT * (20 + shown))
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
    active().charge(STEPS_PER_CALL + STEPS_PER_ELEMENT * max(elements, 0))


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
    **{"ulonglong": "uint64", "intp": "int64", "uintp": "uint64"},
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


_READ: Mapping[str, Callable[[str], float]] = {"f": float, "i": int, "u": int}  # of texts


def number(dtype: NumpyDType, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Return `np.float32(x)`: a number of this type, or an array of numbers."""
    if named:
        raise TypeError(f"{dtype.name}() takes no keyword arguments")
    if len(args) > 1:
        raise TypeError(f"{dtype.name}() takes at most 1 argument ({len(args)} given)")
    kind = dtype.numpy.type
    if not args:
        return wrapped(kind())
    if args[0].__class__ is str and (read := _READ.get(dtype.numpy.kind)):
        return computed(kind, read(args[0]))
    return computed(kind, raw(args[0]))


# ------------------------------------------------------------------------------------------------
# The functions and methods of NumPy that kernels may call, each with the size of its result.
# What is listed computes a result of a size that is known before; each element is paid for then.

_ELEMENTWISE = """
    negative absolute abs sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos
    tan arcsin arccos arctan sinh cosh tanh floor ceil rint trunc round sign isnan isinf isfinite
    add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power
    minimum maximum fmin fmax arctan2 hypot equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
    invert left_shift right_shift where clip isclose deg2rad rad2deg
"""
# Functions whose result and work are not larger than their arguments, up to a factor.
_NO_LARGER = """
    sum prod max min amax amin mean cumsum cumprod argmax argmin any all sort argsort ravel
    transpose swapaxes moveaxis squeeze expand_dims flip fliplr flipud roll concatenate stack vstack
    hstack split array asarray zeros_like ones_like full_like empty_like copy tril triu
    count_nonzero nonzero unique array_equal allclose shape ndim size trace atleast_1d atleast_2d
"""


def _of(*values: Any) -> int:
    """Return the number of elements of all arrays and nested lists, but not of tensors."""
    np, arrays = host(), (value for value in values if not isinstance(value, NkiTensor))
    return sum(_of(*v) if isinstance(v, list | tuple) else int(np.size(v)) for v in arrays)


def _shape(shape: Any, *_: Any) -> int:
    sizes = shape if isinstance(shape, list | tuple) else (shape,)
    if any(size < 0 for size in sizes):
        raise ValueError("negative dimensions are not allowed")
    return volume(map(operator.index, sizes))


def _square(N: Any, M: Any = None, *_: Any, k: Any = 0) -> int:  # noqa: N803  (NumPy's names)
    return _shape((N, N if M is None else M))


def _range(start: Any, stop: Any = None, step: Any = 1, *_: Any) -> int:
    first, last = (0, start) if stop is None else (start, stop)
    return max(int((last - first) / step) + 1, 0) if step else 0


def _spaced(start: Any, stop: Any, num: Any = 50, *_: Any, **__: Any) -> int:
    return _of(start, stop) * operator.index(num)


def _repeated(a: Any, repeats: Any, axis: Any = None) -> int:
    counts = repeats if isinstance(repeats, list | tuple) else [repeats]
    return _of(a) * max(sum(map(operator.index, counts)), 0)


def _diagonal(v: Any, k: Any = 0) -> int:
    np = host()
    return _of(v) if np.ndim(v) > 1 else (_of(v) + abs(operator.index(k))) ** 2


def _all(*values: Any, **named: Any) -> int:
    return _COPIES * _of(*values, *named.values())


_COPIES = 4  # of their arguments that functions make on the way, and comparisons in sorting
_SIZES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(words(_NO_LARGER), _all),
    **dict.fromkeys(("zeros", "ones", "empty"), _shape),
    **dict.fromkeys(("eye", "tri"), _square),
    "identity": lambda n, *_: _shape((n, n)),
    "full": lambda shape, fill_value, *_: _shape(shape),
    "arange": _range,
    "linspace": _spaced,
    "tile": lambda A, reps: _of(A) * _shape(reps),  # noqa: N803
    "repeat": _repeated,
    "broadcast_to": lambda array, shape: _shape(shape),
    "reshape": lambda a, *_, **__: _of(a),
    "outer": lambda a, b: _of(a) * _of(b),
    "kron": lambda a, b: _of(a) * _of(b),
    "diag": _diagonal,
    "meshgrid": lambda *v, **__: len(v) * prod(map(_of, v)),
}
# Memory that is not initialised would make results differ from run to run.
_INSTEAD = {"empty": "zeros", "empty_like": "zeros_like"}
_TYPE_AT = {  # the position of `dtype`
    **dict.fromkeys(("array", "asarray", "zeros", "ones", "empty", "identity", "astype"), 1),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), 1),
    **{"full": 2, "full_like": 2, "eye": 3, "tri": 3, "arange": 3},
}
_NOT_SIZED = {"dtype", "order", "indexing", "kind", "mode", "side"}


class Function(Identical):
    """A function of NumPy's, by name, which `op=` of Beta 1's instructions takes, too."""

    __slots__ = ("name",)
    _kind_ = "function of NumPy"

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<function {self.name}>"


FUNCTIONS = {name: Function(name) for name in (*words(_ELEMENTWISE), *_SIZES)}


def call(m: Any, function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    name = function.name
    return _called(name, getattr(host(), _INSTEAD.get(name, name)), args, named)


def _called(name: str, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    place = _TYPE_AT.get(name)
    values = [element_type(arg) if i == place else raw(arg) for i, arg in enumerate(args)]
    options = {key: _option(key, value) for key, value in named.items()}
    size = _SIZES.get(name)
    if size is None:
        return computed(function, *values, **options)
    try:
        sized = {key: value for key, value in options.items() if key not in _NOT_SIZED}
        pay(size(*values, **sized))
    except TypeError as error:
        raise TypeError(f"np.{name}: {error}".replace("<lambda>", name)) from None
    return wrapped(quietly(function, *values, **options))


def _option(key: str, value: Any) -> Any:
    if key == "dtype":
        return element_type(value)
    return str(value) if key in _NOT_SIZED and isinstance(value, str) else raw(value)


# ---- arrays -------------------------------------------------------------------------------------

ARRAY = Class("ndarray", (OBJECT,), {}, payload=Array, module="numpy")
_METHODS = """
    reshape astype copy flatten ravel transpose swapaxes squeeze sum prod min max mean any all
    cumsum argmax argmin round clip repeat
"""


def _caller(name: str) -> Builtin:
    def method(m: Any, owner: Array, /, *args: Any, **named: Any) -> Any:
        return _called(name, getattr(host().ndarray, name), (owner, *args), named)

    return Builtin(name, method)


def _get(m: Any, owner: Array, key: Any) -> Any:
    index = raw(key)
    pay(_picked(owner._value, index))
    return wrapped(owner._value[index])


def _put(m: Any, owner: Array, key: Any, value: Any) -> None:
    index, new = raw(key), raw(value)
    pay(_picked(owner._value, index) or _of(owner._value[index]))
    quietly(operator.setitem, owner._value, index, new)


def _picked(array: Any, key: Any) -> int:
    """Return a bound of the elements that an index with lists or arrays picks; 0 for a view."""
    np = host()
    lists: list[Any] = []
    rest, axis = array.size, 0
    for part in key if isinstance(key, tuple) else (key,):
        if part is Ellipsis:
            axis = array.ndim  # what the dimensions after it leave is not counted
        elif isinstance(part, list | np.ndarray):
            chosen = np.asarray(part)
            is_mask = chosen.dtype == bool
            lists.append((chosen.size,) if is_mask else chosen.shape)
            width = chosen.ndim if is_mask else 1
            rest //= max(prod(array.shape[axis : axis + width]), 1)
            axis += width
        elif part is not None:
            axis += 1
    return prod(np.broadcast_shapes(*lists)) * rest if lists else 0


def _in_place(name: str) -> Builtin:
    function = getattr(operator, f"__i{name}__")

    def apply(m: Any, owner: Array, other: Any) -> Any:
        value = raw(other)
        pay(_of(owner._value))
        return wrapped(quietly(function, owner._value, value))

    return Builtin(f"__i{name}__", apply)


def _list(m: Any, owner: Array) -> Any:
    pay(_of(owner._value))
    m.elements(owner._value.size, "the list")
    return owner._value.tolist()


ARRAY.members |= {
    **{name: GENERIC.members[name] for name in ("dtype", "ndim", "shape", "size", "itemsize")},
    **{name: GENERIC.members[name] for name in ("item", "__int__", "__float__", "__index__")},
    **{name: _caller(name) for name in words(_METHODS)},
    **{f"__i{name}__": _in_place(name) for name in (*BINARY, "and", "or", "xor")},
    "T": Getter("T", lambda m, owner: Array(owner._value.T)),
    "nbytes": Getter("nbytes", lambda m, owner: owner._value.nbytes),
    "tolist": Builtin("tolist", _list),
    "fill": Builtin("fill", lambda m, owner, value: _put(m, owner, ..., value)),
    "__abs__": GENERIC.members["__abs__"],
    "__getitem__": Builtin("__getitem__", _get),
    "__setitem__": Builtin("__setitem__", _put),
    "__iter__": Builtin("__iter__", lambda m, owner: iter(owner)),
    "__len__": Builtin("__len__", lambda m, owner: len(owner)),
    "__contains__": Builtin("__contains__", lambda m, owner, item: item in owner),
}


# ---- The module `numpy` of the closed world -----------------------------------------------------

_ADVICE = "kernels can use NumPy's numbers, types and functions of arrays; tensors have `nl`"
_NUMBER_NAMES = ("pi", "e", "inf", "nan")
_DATA = frozenset({"random", "save", "load", "fromfile", "loadtxt"})


class NumpyTable(Table):
    """The module, with help for missing names."""

    def missing(self, name: str) -> Exception:
        if name in _DATA:
            help = "pass the data to the kernel as an argument"
            text = f"`numpy.{name}` is not available in kernel code"
            return Missing("host-module", text, name, help)
        error = super().missing(name)
        instead = as_function(name)
        if isinstance(error, Missing) and instead:
            error.help = f"for tensors: {instead}"
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
        kind = getattr(dtype, "dtype", dtype) if isinstance(dtype, Scalar) else dtype
        return Limits(getattr(np, name)(element_type(kind)))

    return Builtin(name, limits)


@cache
def table() -> NumpyTable:
    contents: dict[str, Any] = {name: getattr(math, name) for name in _NUMBER_NAMES}
    contents |= {**FUNCTIONS, **ABSTRACT, **TYPES}
    contents |= {name: TYPES[same] for name, same in ALIASES.items()}
    contents |= {"ndarray": ARRAY, "newaxis": None}
    contents["dtype"] = Builtin("dtype", lambda m, dtype, /: wrapped(element_type(dtype)))
    contents |= {name: _limits(name) for name in ("finfo", "iinfo")}
    return NumpyTable("numpy", contents, _ADVICE)


@cache
def classes() -> dict[type, Class]:
    dtype = Class("dtype", (OBJECT,), {}, payload=NumpyDType, module="numpy")
    dtype.members |= {
        "name": Getter("name", lambda m, owner: owner.name),
        "type": Getter("type", lambda m, owner: owner),
        **{name: Getter(name, _of_dtype(name)) for name in ("itemsize", "kind", "char", "str")},
    }
    function = Class("ufunc", (OBJECT,), {}, payload=Function, module="numpy")
    function.members["__name__"] = Getter("__name__", lambda m, owner: owner.name)
    kinds = (*CLASSES.values(), ARRAY, dtype, function, _LIMITS)
    for cls in (*kinds, *ABSTRACT.values()):
        seal(cls)
    return {cls.payload: cls for cls in kinds}


def _of_dtype(name: str) -> Callable[[Any, NumpyDType], Any]:
    return lambda m, owner: getattr(raw(owner), name)


def callers() -> dict[type, Callable[..., Any]]:
    return {Function: call, NumpyDType: lambda m, dtype, args, named: number(dtype, args, named)}
