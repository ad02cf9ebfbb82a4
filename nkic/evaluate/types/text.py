"""`str`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkic.evaluate import containers
from nkic.evaluate.exceptions import is_a
from nkic.evaluate.objects import INSTANCES, Class, StrInstance
from nkic.evaluate.tables import builtin_class, class_function, method
from nkic.evaluate.texts import format_method
from nkic.evaluate.types import measures
from nkic.evaluate.types.shared import (
    arguments_by_name,
    call_host,
    check_owner,
    constructor,
    host_method,
    inheritable,
    text_of,
)
from nkic.evaluate.types.textlike import textlike

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

STR = builtin_class("str", str)
# The supported encodings, which need no module, by their names without punctuation.
_ENCODINGS = {
    "ascii": "ascii",
    "usascii": "ascii",
    "latin1": "latin-1",
    "iso88591": "latin-1",
    "l1": "latin-1",
    "utf8": "utf-8",
    "u8": "utf-8",
    "utf8sig": "utf-8-sig",
    "cp437": "cp437",
    "cp1252": "cp1252",
    "windows1252": "cp1252",
    **{
        f"utf{n}{order}": f"utf-{n}{'-' * bool(order)}{order}"
        for n in (16, 32)
        for order in ("", "le", "be")
    },
}
_ERRORS = frozenset(
    {
        *("strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace"),
        *("namereplace", "surrogateescape", "surrogatepass"),
    }
)
_LONGEST_NAME = 90  # characters that `namereplace` substitutes for one


@constructor(STR)
def make_str(m: Machine, cls: Class, /, *args: Any, **named: Any) -> str:
    """Return `str(value)` or `str(bytes, encoding, errors)`."""
    bound = arguments_by_name("str", ("object", "encoding", "errors"), args, named)
    if bound.keys() <= {"object"}:
        return m.str(bound["object"]) if bound else ""
    value = bound.get("object", b"")
    if isinstance(value, str):
        raise TypeError("decoding str is not supported")
    if not isinstance(value, bytes):
        kind = m.class_of(value).name
        raise TypeError(f"decoding to str: need a bytes-like object, {kind} found")
    return decode(m, value, bound.get("encoding", "utf-8"), bound.get("errors", "strict"), "str")


@inheritable(STR)
def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return StrInstance(make_str(m, STR, *args, **named))


# ---- Python's own methods -----------------------------------------------------------------------

textlike(STR, str)
for _name in ("isdecimal", "isidentifier", "isnumeric", "isprintable"):
    host_method(STR, str, _name, measures.scan)
host_method(STR, str, "casefold", measures.copy)


# ---- join, format, translate --------------------------------------------------------------------


def join(m: Machine, separator: Any, parts: Any, kind: Any, expected: str) -> Any:
    """Return `separator.join(parts)`, for text and bytes."""
    try:
        values = parts if parts.__class__ in (list, tuple) else m.to_list(parts)
    except TypeError as error:
        if str(error).endswith("is not iterable"):
            raise TypeError("can only join an iterable") from None
        raise
    size = 0
    for index, value in enumerate(values):
        if not isinstance(value, kind):
            actual = m.class_of(value).name
            text = f"sequence item {index}: expected {expected}, {actual} found"
            raise TypeError(text)
        size += len(value)
    m.charge(len(values) >> 1)
    m.text(size + len(separator) * max(len(values) - 1, 0))
    return kind.join(separator, values)


@method(STR, "join")
def _join(m: Machine, text: str, iterable: Any, /) -> Any:
    check_owner(m, text, str, "join")
    return join(m, text, iterable, str, "str instance")


@method(STR, "format")
def _format(m: Machine, text: str, /, *args: Any, **named: Any) -> str:
    check_owner(m, text, str, "format")
    return format_method(m, text_of(m, text))(args, named)


class _Items(Mapping[str, Any]):
    """A kernel's mapping as the argument of `format_map`."""

    def __init__(self, m: Machine, mapping: Any) -> None:
        self._m = m
        self._mapping = mapping

    def __getitem__(self, key: str) -> Any:
        return self._m.item(self._mapping, key)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


@method(STR, "format_map")
def _format_map(m: Machine, text: str, mapping: Any, /) -> str:
    check_owner(m, text, str, "format_map")
    return format_method(m, text_of(m, text))((), _Items(m, mapping))


@class_function(STR, "maketrans")
def _maketrans(m: Machine, x: Any, /, *more: Any) -> Any:
    if isinstance(x, dict) and x.__class__ in INSTANCES:
        x = containers.copy_dict(m, x)
    size = len(x) if isinstance(x, dict | str) else 1
    m.allocate(8 * 4 * size)
    if isinstance(x, dict):
        m.check_keys(x, len(x))
    return call_host(m, str.maketrans, (x, *more))


@method(STR, "translate")
def _translate(m: Machine, text: str, table: Any, /) -> Any:
    check_owner(m, text, str, "translate")
    m.charge(2 * len(text))
    plain = text_of(m, text)
    replacements = {
        ord(character): _place(m, table, ord(character)) for character in dict.fromkeys(plain)
    }
    if any(isinstance(part, str) and len(part) > 1 for part in replacements.values()):
        lengths = {n: len(part) if isinstance(part, str) else 1 for n, part in replacements.items()}
        m.text(sum(lengths[ord(character)] for character in plain))
    else:
        m.text(len(plain))
    return plain.translate(replacements)


def _place(m: Machine, table: Any, number: int) -> Any:
    """Return the entry of a translation table for a character."""
    m.charge(4)
    if table.__class__ is dict:
        return table.get(number, number)
    try:
        return m.item(table, number)
    except Exception as error:
        if is_a(m, error, "LookupError"):
            return number
        raise


# ---- bytes --------------------------------------------------------------------------------------


@method(STR, "encode")
def _encode(m: Machine, text: str, /, encoding: Any = "utf-8", errors: Any = "strict") -> bytes:
    check_owner(m, text, str, "encode")
    return encode(m, text, encoding, errors, "encode")


def encode(m: Machine, text: str, encoding: Any, errors: Any, name: str) -> bytes:
    """Return the bytes of a text."""
    codec, handler = _codec(m, encoding, errors, name)
    longest = _LONGEST_NAME if handler == "namereplace" else 4
    m.text(len(text))
    m.charge(len(text) * longest >> 2)
    data = text_of(m, text).encode(codec, handler)
    m.allow_length(len(data), "the bytes")
    return data


def decode(m: Machine, value: bytes, encoding: Any, errors: Any, name: str) -> str:
    """Return the text of bytes."""
    codec, handler = _codec(m, encoding, errors, name)
    m.text(len(value))
    text = value.decode(codec, handler)
    m.text(len(text))
    return text


def _codec(m: Machine, encoding: Any, errors: Any, name: str) -> tuple[str, str]:
    for parameter, value in (("encoding", encoding), ("errors", errors)):
        if not isinstance(value, str):
            kind = m.class_of(value).name
            raise TypeError(f"{name}() argument '{parameter}' must be str, not {kind}")
    normalised = "".join(character for character in str.lower(encoding) if character.isalnum())
    if normalised not in _ENCODINGS:
        raise LookupError(f"unknown encoding: {text_of(m, encoding)}")
    if errors not in _ERRORS:
        raise LookupError(f"unknown error handler name '{text_of(m, errors)}'")
    return _ENCODINGS[normalised], text_of(m, errors)
