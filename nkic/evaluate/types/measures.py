"""The cost of the methods of text, which are the same for `str` and `bytes`.

A measure runs before its method. It charges for scanning the text, raises if the result would be
too long, and leaves the check of the arguments to the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import INSTANCES

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

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
    """Charge for a split from the right."""
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
    """Charge for `expandtabs`."""
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
