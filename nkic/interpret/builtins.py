"""The builtin functions of kernels, and the table of all builtin names.

Lazy iterators are `LazyIterator`s, which pay for every element. Comparing, hashing, printing and
iterating go through the machine, because values may be instances of kernel classes, contain each
other, or be too large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from nkic.interpret import attributes, exceptions, types
from nkic.interpret.compare import compare, stable_hash
from nkic.interpret.objects import INSTANCES, UNSET, Builtin, Class, Frozen, seal
from nkic.interpret.operators import NUMBERS, OPERATIONS, Union, add
from nkic.interpret.tables import OBJECT, builtin, call_host, check_call, number_of, text_of
from nkic.interpret.types.functions import LAZY, NONE, attribute_name, is_callable
from nkic.interpret.types.sequences import sort_values
from nkic.source import bindings

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_FUNCTIONS: dict[str, Any] = dict(LAZY)
_PRINT_STEPS = 10  # steps for a text, which is kept until the end
_CALL_STEPS = 10  # steps for an element that a function is called with
_NO_DEFAULT = object()


def functions() -> dict[str, Any]:
    return dict(_FUNCTIONS)


@cache
def table() -> dict[str, Any]:
    """Return all names available without an import. All evaluations share the table."""
    constants = {"Ellipsis": ..., "NotImplemented": NotImplemented, "__debug__": True}
    errors = {name: seal(cls) for name, cls in exceptions.table(OBJECT).items()}
    return Frozen({**types.by_name(), **_FUNCTIONS, **errors, **constants})


# ---- one operation of the machine each ----------------------------------------------------------

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "len": lambda m, obj, /: m.length(obj),
    "chr": lambda m, i, /: chr(m.index(i)),
    "repr": lambda m, obj, /: m.repr(obj),
    "format": lambda m, value, format_spec="", /: m.format(value, format_spec),
    "callable": lambda m, obj, /: is_callable(m, obj),
    "isinstance": lambda m, obj, class_or_tuple, /: m.isinstance(obj, class_or_tuple),
}
_FUNCTIONS |= {name: Builtin(name, call) for name, call in _OPERATIONS.items()}


# ---- iteration ----------------------------------------------------------------------------------


@builtin("all", _FUNCTIONS)
def _all(m: Machine, iterable: Any, /) -> bool:
    for value in m.iterate(iterable):
        m.charge(8)
        if not m.truth(value):
            return False
    return True


@builtin("any", _FUNCTIONS)
def _any(m: Machine, iterable: Any, /) -> bool:
    for value in m.iterate(iterable):
        m.charge(8)
        if m.truth(value):
            return True
    return False


@builtin("sum", _FUNCTIONS)
def _sum(m: Machine, iterable: Any, /, start: Any = 0) -> Any:
    for kind, advice in ((str, "''.join(seq)"), (bytes, "b''.join(seq)")):
        if isinstance(start, kind):
            noun = "strings" if kind is str else "bytes"
            raise TypeError(f"sum() can't sum {noun} [use {advice} instead]")
    total = start
    for value in m.iterate(iterable):
        m.charge(3)
        total = add(m, total, value)
    return total


@builtin("sorted", _FUNCTIONS)
def _sorted(m: Machine, iterable: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    return sort_values(m, m.to_list(iterable), key, reverse)


@builtin("max", _FUNCTIONS)
def _max(m: Machine, *args: Any, key: Any = None, default: Any = _NO_DEFAULT) -> Any:
    return _extremum(m, "max", ">", args, key, default)


@builtin("min", _FUNCTIONS)
def _min(m: Machine, *args: Any, key: Any = None, default: Any = _NO_DEFAULT) -> Any:
    return _extremum(m, "min", "<", args, key, default)


def _extremum(m: Machine, name: str, symbol: str, args: Any, key: Any, default: Any) -> Any:
    if not args:
        raise TypeError(f"{name} expected at least 1 argument, got 0")
    if len(args) > 1 and default is not _NO_DEFAULT:
        raise TypeError(f"Cannot specify a default for {name}() with multiple positional arguments")
    if len(args) == 2 and key is None and {type(arg) for arg in args} <= NUMBERS:
        return max(*args) if name == "max" else min(*args)
    best = best_key = _NO_DEFAULT
    for value in m.iterate(args[0]) if len(args) == 1 else args:
        m.charge(10)
        sort_key = value if key is None else m.call(key, (value,), None)
        if best is _NO_DEFAULT or m.truth(compare(m, symbol, sort_key, best_key)):
            best, best_key = value, sort_key
    if best is not _NO_DEFAULT:
        return best
    if default is _NO_DEFAULT:
        raise ValueError(_EMPTY_MESSAGES[name])
    return default


def _message(function: Callable[..., Any]) -> str:
    """Return the message of the running Python, because versions word this error differently."""
    try:
        function(())
    except ValueError as error:
        return str(error)
    raise AssertionError(function)


_EMPTY_MESSAGES = {"max": _message(max), "min": _message(min)}


# ---- numbers ------------------------------------------------------------------------------------


@builtin("abs", _FUNCTIONS)
def _abs(m: Machine, x: Any, /) -> Any:
    if x.__class__ in NUMBERS:
        return abs(x)
    method = m.class_of(x).find("__abs__")
    if method is not UNSET:
        return m.call(method, (x,), None)
    if isinstance(x, int | float):
        return abs(number_of(x))
    raise TypeError(f"bad operand type for abs(): '{m.class_of(x).name}'")


@builtin("divmod", _FUNCTIONS)
def _divmod(m: Machine, x: Any, y: Any, /) -> Any:
    if x.__class__ in NUMBERS and y.__class__ in NUMBERS:
        m.charge((_bits(x) >> 6) * (_bits(y) >> 6) >> 5)
        return divmod(x, y)
    for owner, other, name in ((x, y, "__divmod__"), (y, x, "__rdivmod__")):
        method = owner.cls.find(name) if owner.__class__ in INSTANCES else UNSET
        result = NotImplemented if method is UNSET else m.call(method, (owner, other), None)
        if result is not NotImplemented:
            return result
    if isinstance(x, int | float) and isinstance(y, int | float):
        return divmod(number_of(x), number_of(y))
    kinds = f"'{m.class_of(x).name}' and '{m.class_of(y).name}'"
    raise TypeError(f"unsupported operand type(s) for divmod(): {kinds}")


def _bits(number: Any) -> int:
    return int(number.bit_length()) if isinstance(number, int) else 64


@builtin("pow", _FUNCTIONS)
def _pow(m: Machine, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return OPERATIONS["**"](m, base, exp)
    method = base.cls.find("__pow__") if base.__class__ in INSTANCES else UNSET
    if method is not UNSET:
        return m.call(method, (base, exp, mod), None)
    parts = [number_of(operand) for operand in (base, exp, mod)]
    if all(isinstance(operand, int) for operand in parts):
        words = 1 + (max(_bits(parts[0]), _bits(parts[2])) >> 6)
        m.charge(_bits(parts[1]) * words * words >> 3)
    return call_host(m, pow, parts)


@builtin("round", _FUNCTIONS)
def _round(m: Machine, number: Any, ndigits: Any = None) -> Any:
    is_number = isinstance(number, int | float)
    if number.__class__ in INSTANCES or not is_number:
        method = m.class_of(number).find("__round__")
        if method is not UNSET:
            return m.call(method, (number,) if ndigits is None else (number, ndigits), None)
    if is_number:
        return _rounded(m, number_of(number), None if ndigits is None else m.index(ndigits))
    raise TypeError(f"type {m.class_of(number).name} doesn't define __round__ method")


def _rounded(m: Machine, number: Any, digits: int | None) -> Any:
    if isinstance(number, int) and digits is not None and digits < 0:
        if -digits > number.bit_length():  # Python would compute that power of ten
            return 0
        m.charge(-digits)
    return round(number) if digits is None else round(number, digits)


def _in_base(name: str, function: Callable[[int], str]) -> None:
    def call(m: Machine, number: Any, /) -> str:
        return function(m.index(number) if number.__class__ is not int else number)

    builtin(name, _FUNCTIONS)(call)


_in_base("bin", bin)
_in_base("hex", hex)
_in_base("oct", oct)


@builtin("hash", _FUNCTIONS)
def _hash(m: Machine, obj: Any, /) -> int:
    if obj.__class__ in INSTANCES:
        return stable_hash(m, obj)
    return call_host(m, stable_hash, (m, obj))  # type: ignore[no-any-return]


# ---- text ---------------------------------------------------------------------------------------


@builtin("ord", _FUNCTIONS)
def _ord(m: Machine, c: Any, /) -> int:
    if not isinstance(c, str | bytes):
        kind = m.class_of(c).name
        raise TypeError(f"ord() expected string of length 1, but {kind} found")
    return ord(text_of(m, c) if isinstance(c, str) else c)


@builtin("ascii", _FUNCTIONS)
def _ascii(m: Machine, obj: Any, /) -> str:
    text = m.repr(obj)
    m.charge(len(text))
    shown = text.encode("ascii", "backslashreplace").decode("ascii")
    m.allow_length(len(shown), "the text")
    return shown


@builtin("print", _FUNCTIONS)
def _print(
    m: Machine, *args: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False
) -> None:
    """Pass the text to the machine's `show`; `file` and `flush` have no effect."""
    between, after = _part(m, "sep", sep, " "), _part(m, "end", end, "\n")
    texts = [m.str(value) for value in args]
    size = sum(map(len, texts)) + len(between) * len(texts) + len(after)
    m.text(size)
    m.charge(_PRINT_STEPS + size)  # all of it is kept until the end
    m.show(between.join(texts) + after)


def _part(m: Machine, name: str, value: Any, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        raise TypeError(f"{name} must be None or a string, not {m.class_of(value).name}")
    return text_of(m, value)


# ---- classes and attributes ---------------------------------------------------------------------


@builtin("issubclass", _FUNCTIONS)
def _issubclass(m: Machine, cls: Any, class_or_tuple: Any, /) -> bool:
    if not isinstance(cls, Class):
        raise TypeError("issubclass() arg 1 must be a class")
    return _is_subclass(m, cls, class_or_tuple)


def _is_subclass(m: Machine, cls: Class, kinds: Any) -> bool:
    if isinstance(kinds, Class):
        hook = kinds.extra.get("accepts_class")
        return cls.is_a(kinds) or (hook is not None and bool(hook(m, cls)))
    if isinstance(kinds, Union):
        kinds = tuple(NONE if member is None else member for member in kinds.parts)
    if not isinstance(kinds, tuple):
        text = "issubclass() arg 2 must be a class, a tuple of classes, or a union"
        raise TypeError(text)
    m.charge(_CALL_STEPS * len(kinds))
    return any(m.nested(_is_subclass, m, cls, member) for member in kinds)


def _attribute_or(m: Machine, obj: Any, name: str, default: Any) -> Any:
    try:
        return attributes.get(m, obj, name)
    except Exception as error:
        if exceptions.is_a(m, error, "AttributeError"):
            error.__traceback__ = None  # its frames would live on: no collector runs
            m.charge(exceptions.CAUGHT)
            return default
        raise


@builtin("getattr", _FUNCTIONS)
def _getattr(m: Machine, *args: Any, **named: Any) -> Any:
    check_call("getattr", args, named, 2, 3)
    name = attribute_name(m, args[1])
    if len(args) == 3:
        return _attribute_or(m, args[0], name, args[2])
    return attributes.get(m, args[0], name)


@builtin("hasattr", _FUNCTIONS)
def _hasattr(m: Machine, obj: Any, name: Any, /) -> bool:
    return _attribute_or(m, obj, attribute_name(m, name), UNSET) is not UNSET


@builtin("setattr", _FUNCTIONS)
def _setattr(m: Machine, obj: Any, name: Any, value: Any, /) -> None:
    attributes.put(m, obj, _assignable(m, obj, name), value)


@builtin("delattr", _FUNCTIONS)
def _delattr(m: Machine, obj: Any, name: Any, /) -> None:
    attributes.remove(m, obj, _assignable(m, obj, name))


def _assignable(m: Machine, owner: Any, name: Any) -> str:
    attribute = attribute_name(m, name)
    if bindings.is_hidden(attribute):
        raise attributes._not_assignable(m, owner, attribute)
    if not attribute.isidentifier():
        m.charge(len(attribute))
        raise TypeError(f"attribute name must be a name, not {m.repr(attribute)}")
    return attribute
