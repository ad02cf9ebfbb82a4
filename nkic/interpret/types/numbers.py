"""`int`, `bool` and `float`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.interpret.objects import INSTANCES, UNSET, Class, FloatInstance, IntInstance
from nkic.interpret.tables import (
    builtin_class,
    call_host,
    check_call,
    class_method,
    constructor,
    getter,
    host_method,
    inheritable,
    method,
    no_extra_cost,
    number_of,
    text_of,
)
from nkic.interpret.types.text import as_bytes

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

INT = builtin_class("int", int)
BOOL = Class("bool", (INT,), {}, payload=bool)
FLOAT = builtin_class("float", float)
_WIDE = 64  # bits of an integer that needs no check of the limits
_LONG_TEXT = 8192  # characters of a number's text


# ---- int ----------------------------------------------------------------------------------------


@constructor(INT)
def make_int(m: Machine, cls: Class, /, *args: Any, **named: Any) -> int:
    """Return `int(x)` or `int(text, base)`."""
    if named.keys() - {"base"}:
        raise TypeError(
            f"'{min(named.keys() - {'base'})}' is an invalid keyword argument for int()"
        )
    if len(args) + len(named) > 2:
        raise TypeError(f"int() takes at most 2 arguments ({len(args) + len(named)} given)")
    if not args:
        if named:
            raise TypeError("int() missing string argument")
        return 0
    if len(args) == 2 or named:
        value = args[0]
        base = args[1] if len(args) == 2 else named["base"]
        if not isinstance(value, str | bytes):
            raise TypeError("int() can't convert non-string with explicit base")
        return _checked(m, _of_text(m, value, m.index(base)))
    return _to_int(m, args[0])


def _of_text(m: Machine, value: Any, base: int) -> int:
    m.charge(len(value) >> 1)
    if len(value) > _LONG_TEXT:
        m.allow_bits(len(value.strip("0 _") if isinstance(value, str) else value.strip(b"0 _")))
    return int(text_of(m, value) if isinstance(value, str) else value, base)


def _to_int(m: Machine, value: Any) -> int:
    kind = value.__class__
    if kind is int or kind is bool or kind is float:
        return int(value)
    if kind in INSTANCES:
        for special in ("__int__", "__index__", "__trunc__"):
            method = value.cls.find(special)
            if method is not UNSET:
                return _returned(m, special, m.call(method, (value,), None))
        if isinstance(value, int | float):
            return int(number_of(value))
    if isinstance(value, str | bytes):
        return _checked(m, _of_text(m, value, 10))
    special = m.class_of(value).find("__int__")
    if special is not UNSET:
        return int(m.call(special, (value,), None))
    raise TypeError(
        "int() argument must be a string, a bytes-like object or a real number, "
        f"not '{m.class_of(value).name}'"
    )


def _returned(m: Machine, special: str, value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{special} returned non-int (type {m.class_of(value).name})")
    return int(number_of(value))


def _checked(m: Machine, number: int) -> int:
    if number.bit_length() > _WIDE:
        m.allow_bits(number.bit_length())
    return number


inheritable(INT)(lambda m, cls, payload, args, named: IntInstance(make_int(m, INT, *args, **named)))


for _name in ("as_integer_ratio", "bit_count", "bit_length", "conjugate"):
    host_method(INT, int, _name, no_extra_cost)


method(INT, "is_integer")(lambda m, number, /: True)


@method(INT, "to_bytes")
def _to_bytes(
    m: Machine, number: int, /, length: Any = 1, byteorder: Any = "big", *, signed: Any = False
) -> Any:
    size = m.index(length)
    m.elements(max(size, 0) >> 3, "the bytes")
    m.allow_length(size, "the bytes")
    if not isinstance(byteorder, str):
        kind = m.class_of(byteorder).name
        raise TypeError(f"to_bytes() argument 'byteorder' must be str, not {kind}")
    return call_host(m, int.to_bytes, (number, size, byteorder), {"signed": m.truth(signed)})


@class_method(INT, "from_bytes")
def _from_bytes(
    m: Machine, cls: Class, /, bytes: Any, byteorder: Any = "big", *, signed: Any = False
) -> Any:
    data = as_bytes(m, bytes)
    m.charge(len(data))  # zeros are read, too
    m.allow_bits(8 * len(data.strip(b"\0")))
    if not isinstance(byteorder, str):
        kind = m.class_of(byteorder).name
        raise TypeError(f"from_bytes() argument 'byteorder' must be str, not {kind}")
    number = call_host(m, int.from_bytes, (data, byteorder), {"signed": m.truth(signed)})
    m.allow_bits(number.bit_length())
    return number if cls is INT else m.call(cls, (number,), None)


getter(INT, "real")(lambda m, number: +number_of(number))
getter(INT, "numerator")(lambda m, number: +number_of(number))
getter(INT, "imag")(lambda m, number: 0)
getter(INT, "denominator")(lambda m, number: 1)


# ---- bool ---------------------------------------------------------------------------------------


@constructor(BOOL)
def _make_bool(m: Machine, cls: Class, /, *args: Any, **named: Any) -> bool:
    check_call("bool", args, named, 0, 1)
    return m.truth(args[0]) if args else False


# ---- float --------------------------------------------------------------------------------------


@constructor(FLOAT)
def make_float(m: Machine, cls: Class, /, *args: Any, **named: Any) -> float:
    check_call("float", args, named, 0, 1)
    return _to_float(m, args[0]) if args else 0.0


def _to_float(m: Machine, value: Any) -> float:
    kind = value.__class__
    if kind is float or kind is int or kind is bool:
        return float(value)
    if kind in INSTANCES:
        method = value.cls.find("__float__")
        if method is not UNSET:
            return returned_float(m, m.call(method, (value,), None), value)
        if isinstance(value, int | float):
            return float(number_of(value))
        if value.cls.find("__index__") is not UNSET:
            return float(m.index(value))
    if isinstance(value, float):  # a NumPy scalar
        return float.__float__(value)
    if isinstance(value, str | bytes):
        m.charge(1 + (len(value) >> 2))
        return float(text_of(m, value) if isinstance(value, str) else value)
    special = m.class_of(value).find("__float__")
    if special is not UNSET:
        return float(m.call(special, (value,), None))
    kind_name = m.class_of(value).name
    raise TypeError(f"float() argument must be a string or a real number, not '{kind_name}'")


def returned_float(m: Machine, result: Any, value: Any) -> float:
    """Return the result of `value.__float__()`. Raises `TypeError` if it is not a float."""
    if not isinstance(result, float):
        kinds = f"{m.class_of(value).name}.__float__ returned non-float"
        raise TypeError(f"{kinds} (type {m.class_of(result).name})")
    return float(number_of(result))


@inheritable(FLOAT)
def _float_content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return FloatInstance(make_float(m, FLOAT, *args, **named))


for _name in ("as_integer_ratio", "conjugate", "hex", "is_integer"):
    host_method(FLOAT, float, _name, no_extra_cost)


@class_method(FLOAT, "fromhex")
def _fromhex(m: Machine, cls: Class, string: Any, /) -> Any:
    m.charge(len(string) if isinstance(string, str) else 1)
    if not isinstance(string, str):
        raise TypeError("bad argument type for built-in operation")
    number = float.fromhex(text_of(m, string))
    return number if cls is FLOAT else m.call(cls, (number,), None)


getter(FLOAT, "real")(lambda m, number: number_of(number))
getter(FLOAT, "imag")(lambda m, number: 0.0)
