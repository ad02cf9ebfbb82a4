"""`bytes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import INSTANCES, UNSET, Class
from nkic.evaluate.tables import builtin_class, class_function, method
from nkic.evaluate.types.shared import (
    arguments_by_name,
    call_host,
    check_owner,
    class_method,
    constructor,
    text_of,
)
from nkic.evaluate.types.text import decode, encode, join
from nkic.evaluate.types.textlike import textlike

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

BYTES = builtin_class("bytes", bytes)


@constructor(BYTES)
def make_bytes(m: Machine, cls: Class, /, *args: Any, **named: Any) -> bytes:
    """Return `bytes(count)`, `bytes(values)` or `bytes(text, encoding)`."""
    bound = arguments_by_name("bytes", ("source", "encoding", "errors"), args, named)
    if not bound:
        return b""
    value = bound.get("source", UNSET)
    if isinstance(value, str):
        if "encoding" not in bound:
            raise TypeError("string argument without an encoding")
        return encode(m, value, bound["encoding"], bound.get("errors", "strict"), "bytes")
    for name in ("encoding", "errors"):
        if name in bound:
            raise TypeError(f"{name} without a string argument")
    return _of_value(m, value)


def _of_value(m: Machine, value: Any) -> bytes:
    if value.__class__ in INSTANCES and value.cls.find("__bytes__") is not UNSET:
        result = m.call(value.cls.find("__bytes__"), (value,), None)
        if not isinstance(result, bytes):
            kind = m.class_of(result).name
            raise TypeError(f"__bytes__ returned non-bytes (type {kind})")
        return result
    if isinstance(value, int) or (
        value.__class__ in INSTANCES and value.cls.find("__index__") is not UNSET
    ):
        count = m.index(value)
        if count < 0:
            raise ValueError("negative count")
        m.text(count, "the bytes")
        return bytes(count)
    return as_bytes(m, value)


def as_bytes(m: Machine, value: Any) -> bytes:
    """Return a bytes value as it is, or convert an iterable of integers."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        raise TypeError("cannot convert 'str' object to bytes")
    try:
        values = value if value.__class__ in (list, tuple) else m.to_list(value)
    except TypeError as error:
        if not str(error).endswith("is not iterable"):
            raise
        kind = m.class_of(value).name
        raise TypeError(f"cannot convert '{kind}' object to bytes") from None
    m.text(len(values), "the bytes")
    m.charge(len(values))
    return bytes([_byte(m, number) for number in values])


def _byte(m: Machine, value: Any) -> int:
    number = value if value.__class__ is int else call_host(m, m.index, (value,))
    if not 0 <= number < 256:
        raise ValueError("bytes must be in range(0, 256)")
    return int(number)


# ---- Python's own methods -----------------------------------------------------------------------

textlike(BYTES, bytes)


@method(BYTES, "translate")
def _translate(m: Machine, data: bytes, table: Any, /, delete: Any = b"") -> Any:
    check_owner(m, data, bytes, "translate")
    m.text(len(data), "the bytes")
    return call_host(m, bytes.translate, (data, table), {"delete": delete})


@class_function(BYTES, "maketrans")
def _maketrans(m: Machine, frm: Any, to: Any, /) -> Any:
    m.charge(64 + (len(frm) >> 3 if isinstance(frm, bytes) else 0))
    return call_host(m, bytes.maketrans, (frm, to))


@method(BYTES, "join")
def _join(m: Machine, data: bytes, iterable: Any, /) -> Any:
    check_owner(m, data, bytes, "join")
    return join(m, data, iterable, bytes, "a bytes-like object")


@method(BYTES, "decode")
def _decode(m: Machine, data: bytes, /, encoding: Any = "utf-8", errors: Any = "strict") -> str:
    check_owner(m, data, bytes, "decode")
    return decode(m, data, encoding, errors, "decode")


@method(BYTES, "hex")
def _hex(m: Machine, data: bytes, /, *args: Any, **named: Any) -> Any:
    check_owner(m, data, bytes, "hex")
    m.text(3 * len(data) if args or named else 2 * len(data))
    return call_host(m, bytes.hex, (data, *args), named)


@class_method(BYTES, "fromhex")
def _fromhex(m: Machine, cls: Class, string: Any, /) -> Any:
    if not isinstance(string, str):
        raise TypeError(f"fromhex() argument must be str, not {m.class_of(string).name}")
    m.text(len(string), "the bytes")
    return bytes.fromhex(text_of(m, string))
