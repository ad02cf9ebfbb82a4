"""`str`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nkic.interpret import containers
from nkic.interpret.exceptions import is_a
from nkic.interpret.objects import INSTANCES, UNSET, Class, StrInstance
from nkic.interpret.tables import (
    arguments_by_name,
    builtin_class,
    call_host,
    class_function,
    class_method,
    constructor,
    host_method,
    inheritable,
    method,
    text_of,
)
from nkic.interpret.texts import format_method

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


# ---- The cost of the methods of text, which are the same for `str` and `bytes` ------------------
# A measure runs before its method. It charges for scanning the text, raises if the result would be
# too long, and leaves the check of the arguments to the method.

_SHORT_TEXT = 2500  # the text length from which on Python searches in linear time
_SHORT_PATTERN = 100  # the pattern length from which on Python searches in linear time
_STRING_STEPS = 15  # steps for the bytes of one more string


def scan(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for one scan of the text; the result is a number or a truth value."""
    m.charge(1 + (len(text) >> 3))


def copy(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for a result of about the length of the text; changing case may triple it."""
    m.text(len(text))
    m.charge(len(text) >> 1)


def search(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for Python's search from the left, which is linear except for short operands."""
    part = _length(args, 0)
    m.charge(1 + (len(text) >> 3) + (len(text) * min(part, _pattern_bound(text)) >> 6))


def search_back(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for Python's search from the right, which compares at every position."""
    m.charge(1 + (len(text) >> 3) + (len(text) * _length(args, 0) >> 6))


def _pattern_bound(text: Any) -> int:
    return _SHORT_TEXT if len(text) < _SHORT_TEXT else _SHORT_PATTERN


def starts(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for `startswith` and `endswith`, of one string or a tuple of them."""
    parts = args[0] if args and isinstance(args[0], tuple) else args[:1]
    m.charge(1 + sum(1 + (len(part) >> 4) for part in parts if isinstance(part, str | bytes)))


def strip(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for looking up every character in the set of characters to remove."""
    m.text(len(text))
    m.charge(len(text) * (1 + _length(args, 0)) >> 6)


def split(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for a split: the number of parts depends on the number of separators."""
    search(m, text, args)
    _charge_parts(m, text, args)


def split_back(m: Machine, text: Any, args: Sequence[Any]) -> None:
    search_back(m, text, args)
    _charge_parts(m, text, args)


def _charge_parts(m: Machine, text: Any, args: Sequence[Any]) -> None:
    separator = args[0] if args else None
    if isinstance(separator, str | bytes) and len(separator) and _same_type(text, separator):
        count = 1 + _count(text, separator)
    else:
        count = 1 + len(text) // 2
    maxsplit = args[1] if len(args) > 1 else -1
    if isinstance(maxsplit, int) and 0 <= maxsplit < count:
        count = maxsplit + 1
    m.elements(count, "the list")
    m.charge(len(text) >> 2)
    m.charge(count * _STRING_STEPS)


def lines(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for `splitlines`; a line has at least one character."""
    kinds = ("\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
    if isinstance(text, bytes):
        count = 1 + text.count(b"\n") + text.count(b"\r")
    else:
        count = 1 + sum(_count(text, line_end) for line_end in kinds)
    m.elements(count, "the list")
    m.charge(len(text) + count * _STRING_STEPS)


def width(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for `ljust` and the like, whose result has the requested length."""
    requested = _integer(m, args, 0)
    m.text(max(len(text), requested))


def tabs(m: Machine, text: Any, size: int) -> None:
    count = _count(text, "\t" if isinstance(text, str) else b"\t")
    m.text(len(text) + count * max(size, 0))
    m.charge(len(text) >> 2)


def replaced(m: Machine, text: Any, args: Sequence[Any]) -> None:
    """Charge for `replace`, whose result depends on the number of occurrences."""
    search(m, text, args)
    if len(args) < 2 or not (_same_type(text, args[0]) and _same_type(text, args[1])):
        return
    old, new = args[0], args[1]
    times = _count(text, old)
    limit = args[2] if len(args) > 2 else -1
    if isinstance(limit, int) and 0 <= limit < times:
        times = int(limit)
    m.text(len(text) + times * (len(new) - len(old)))
    m.charge(times)


def _count(text: Any, part: Any) -> int:
    return int(str.count(text, part) if isinstance(text, str) else bytes.count(text, part))


def _same_type(text: Any, part: Any) -> bool:
    return isinstance(part, str if isinstance(text, str) else bytes)


def _length(args: Sequence[Any], index: int) -> int:
    part = args[index] if len(args) > index else None
    return len(part) if isinstance(part, str | bytes) else 1


def _integer(m: Machine, args: Sequence[Any], index: int) -> int:
    value = args[index] if len(args) > index else 0
    if isinstance(value, int) and value.__class__ not in INSTANCES:
        return value
    return m.index(value) if value.__class__ in INSTANCES else 0


MEASURES = {
    **dict.fromkeys(("capitalize", "lower", "swapcase", "title", "upper"), copy),
    **dict.fromkeys(("removeprefix", "removesuffix"), copy),
    **dict.fromkeys(("isalnum", "isalpha", "isascii", "isdigit", "islower", "isspace"), scan),
    **dict.fromkeys(("istitle", "isupper"), scan),
    **dict.fromkeys(("count", "find", "index"), search),
    **dict.fromkeys(("rfind", "rindex"), search_back),
    **dict.fromkeys(("startswith", "endswith"), starts),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), strip),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), width),
    "partition": split,
    "rpartition": split_back,
}


# ---- The methods that `str` and `bytes` share ---------------------------------------------------


def textlike(kind: Class, python: type[str] | type[bytes]) -> None:
    """Register the shared methods for `kind`, whose values are of the Python class `python`."""
    for name, measure in MEASURES.items():
        host_method(kind, python, name, measure)

    @method(kind, "split")
    def _split(m: Machine, text: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        split(m, text, (sep, maxsplit))
        return call_host(m, python.split, (text, sep, maxsplit))

    @method(kind, "rsplit")
    def _rsplit(m: Machine, text: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        split_back(m, text, (sep, maxsplit))
        return call_host(m, python.rsplit, (text, sep, maxsplit))

    @method(kind, "splitlines")
    def _splitlines(m: Machine, text: Any, /, keepends: Any = False) -> Any:
        lines(m, text, ())
        return python.splitlines(text, m.truth(keepends))

    @method(kind, "expandtabs")
    def _expandtabs(m: Machine, text: Any, /, tabsize: Any = 8) -> Any:
        size = m.index(tabsize)
        tabs(m, text, size)
        return python.expandtabs(text, size)

    @method(kind, "replace")
    def _replace(m: Machine, text: Any, old: Any, new: Any, count: Any = -1, /) -> Any:
        args = (old, new, m.index(count))
        replaced(m, text, args)
        return call_host(m, python.replace, (text, *args))


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


inheritable(STR)(lambda m, cls, payload, args, named: StrInstance(make_str(m, STR, *args, **named)))


# ---- Python's own methods -----------------------------------------------------------------------

textlike(STR, str)
for _name in ("isdecimal", "isidentifier", "isnumeric", "isprintable"):
    host_method(STR, str, _name, scan)
host_method(STR, str, "casefold", copy)


# ---- join, format, translate --------------------------------------------------------------------


def join(m: Machine, separator: Any, parts: Any, kind: Any, expected: str) -> Any:
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


method(STR, "join")(lambda m, text, iterable, /: join(m, text, iterable, str, "str instance"))


@method(STR, "format")
def _format(m: Machine, text: str, /, *args: Any, **named: Any) -> str:
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
    return encode(m, text, encoding, errors, "encode")


def encode(m: Machine, text: str, encoding: Any, errors: Any, name: str) -> bytes:
    codec, handler = _codec(m, encoding, errors, name)
    longest = _LONGEST_NAME if handler == "namereplace" else 4
    m.text(len(text))
    m.charge(len(text) * longest >> 2)
    data = text_of(m, text).encode(codec, handler)
    m.allow_length(len(data), "the bytes")
    return data


def decode(m: Machine, value: bytes, encoding: Any, errors: Any, name: str) -> str:
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
    m.charge(len(encoding) + len(errors))
    normalised = "".join(character for character in str.lower(encoding) if character.isalnum())
    if normalised not in _ENCODINGS:
        raise LookupError(f"unknown encoding: {text_of(m, encoding)}")
    if errors not in _ERRORS:
        raise LookupError(f"unknown error handler name '{text_of(m, errors)}'")
    return _ENCODINGS[normalised], text_of(m, errors)


# ---- `bytes` ------------------------------------------------------------------------------------

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
def _translate_bytes(m: Machine, data: bytes, table: Any, /, delete: Any = b"") -> Any:
    m.text(len(data), "the bytes")
    return call_host(m, bytes.translate, (data, table), {"delete": delete})


@class_function(BYTES, "maketrans")
def _maketrans_bytes(m: Machine, frm: Any, to: Any, /) -> Any:
    m.charge(64 + (len(frm) >> 3 if isinstance(frm, bytes) else 0))
    return call_host(m, bytes.maketrans, (frm, to))


@method(BYTES, "join")
def _join_bytes(m: Machine, data: bytes, iterable: Any, /) -> Any:
    return join(m, data, iterable, bytes, "a bytes-like object")


@method(BYTES, "decode")
def _decode(m: Machine, data: bytes, /, encoding: Any = "utf-8", errors: Any = "strict") -> str:
    return decode(m, data, encoding, errors, "decode")


@method(BYTES, "hex")
def _hex(m: Machine, data: bytes, /, *args: Any, **named: Any) -> Any:
    m.text(3 * len(data) if args or named else 2 * len(data))
    return call_host(m, bytes.hex, (data, *args), named)


@class_method(BYTES, "fromhex")
def _fromhex(m: Machine, cls: Class, string: Any, /) -> Any:
    if not isinstance(string, str):
        raise TypeError(f"fromhex() argument must be str, not {m.class_of(string).name}")
    m.text(len(string), "the bytes")
    return bytes.fromhex(text_of(m, string))
