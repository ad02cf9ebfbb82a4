"""Strings and f-strings: section 12 of the grammar."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from nkic.base.diagnostics import refusal
from nkic.base.source import Span
from nkic.syntax import nodes as n

Part: TypeAlias = n.Constant | n.FormattedValue
_STRING = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
_SIMPLE = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n",
    "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\([0-7]{1,3}|x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|N\{[^}]*\}|[\s\S])"
)
_BYTES_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{0,2}|[\s\S])")
_DIGITS = {"x": 2, "u": 4, "U": 8}


# ---- rules ---------------------------------------------------------------------------------


def string(span: Span, text: str) -> n.Constant:
    prefix, quote = _STRING.match(text).groups()  # type: ignore[union-attr]
    body = text[len(prefix) + len(quote) : -len(quote)]
    prefix = prefix.lower()
    if "b" in prefix:
        return n.Constant(span, _bytes(span, body, raw="r" in prefix))
    return n.Constant(span, body if "r" in prefix else _unescaped(span, body))


def strings(span: Span, *pieces: n.Constant | n.JoinedStr) -> n.Constant | n.JoinedStr:
    """Concatenate adjacent strings; an f-string among them makes the result an f-string."""
    if len(pieces) == 1 and isinstance(pieces[0], n.Constant):
        return pieces[0]
    _check_no_mix(pieces)
    parts: list[Part] = []
    for piece in pieces:
        parts += piece.values if isinstance(piece, n.JoinedStr) else (piece,)
    if any(isinstance(piece, n.JoinedStr) for piece in pieces):
        return n.JoinedStr(span, _merged(parts))
    values = [part.value for part in parts if isinstance(part, n.Constant)]
    empty = b"" if isinstance(values[0], bytes) else ""
    return n.Constant(span, empty.join(values))  # type: ignore[arg-type]  # all of one kind


def fstring(span: Span, start: str, *parts: tuple[Part, ...]) -> n.JoinedStr:
    return n.JoinedStr(span, tuple(part for group in parts for part in group))


def cooked_text(span: Span, text: str) -> tuple[Part, ...]:
    return (n.Constant(span, _unescaped(span, text)),)


def raw_text(span: Span, text: str) -> tuple[Part, ...]:
    return (n.Constant(span, text),)


def fstring_field(
    span: Span,
    value: n.Expression,
    debug: str | None,
    conversion: str | None,
    format_spec: n.JoinedStr | None,
) -> tuple[Part, ...]:
    """Return the field; for `=`, preceded by the text of its expression."""
    if debug is None:
        return (n.FormattedValue(span, value, conversion or "", format_spec),)
    # Without a format, `{x = }` shows the value's repr.
    default = "" if format_spec else "r"
    field = n.FormattedValue(span, value, conversion or default, format_spec)
    return n.Constant(_debug_span(span, debug), debug), field


def _debug_span(field: Span, text: str) -> Span:
    *before, last = text.split("\n")
    start = field.column + 1
    end = len(last) + (1 if before else start)
    return Span(field.path, field.line, start, field.line + len(before), end)


def conversion(span: Span, letter: str) -> str:
    if letter not in ("s", "r", "a"):
        message = f"`!{letter}` is not a conversion of an f-string's field"
        raise refusal("bad-fstring", message, span, help="use `!r`, `!s` or `!a`")
    if span.end_line != span.line or span.end_column - span.column != 2:
        message = "the conversion must follow the `!` directly"
        raise refusal("bad-fstring", message, span, help=f"write `!{letter}`")
    return letter


def format_spec(span: Span, *parts: tuple[Part, ...]) -> n.JoinedStr:
    return n.JoinedStr(span, _merged(part for group in parts for part in group))


# ---- values --------------------------------------------------------------------------------


def _check_no_mix(pieces: Iterable[n.Constant | n.JoinedStr]) -> None:
    is_bytes = [isinstance(p, n.Constant) and isinstance(p.value, bytes) for p in pieces]
    if any(is_bytes) and not all(is_bytes):
        odd = next(p for p, b in zip(pieces, is_bytes, strict=True) if b is not is_bytes[0])
        message = "adjacent strings must be all text or all bytes"
        raise refusal("bad-string", message, odd.span, help="put an operator or comma between")


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Concatenate adjacent texts and drop empty ones."""
    merged: list[Part] = []
    texts: list[n.Constant] = []
    for part in parts:
        if isinstance(part, n.FormattedValue):
            merged += [*_joined(texts), part]
            texts = []
        elif part.value:
            texts.append(part)
    return (*merged, *_joined(texts))


def _joined(texts: list[n.Constant]) -> list[n.Constant]:
    """Return one constant for several adjacent ones."""
    if len(texts) < 2:
        return texts
    value = "".join([str(text.value) for text in texts])
    return [n.Constant(texts[0].span.to(texts[-1].span), value)]


def _unescaped(span: Span, body: str) -> str:
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda match: _character(span, match[1]), body)


def _character(span: Span, escape: str) -> str:
    if escape in _SIMPLE:
        return _SIMPLE[escape]
    first = escape[0]
    if first in "01234567":
        return chr(int(escape, 8))
    if first in _DIGITS:
        return _by_number(span, escape)
    if first == "N":
        return _by_name(span, escape)
    return "\\" + escape  # not an escape: the backslash remains


def _by_number(span: Span, escape: str) -> str:
    digits = _DIGITS[escape[0]]
    if len(escape) != digits + 1:
        message = f"`\\{escape}` needs {digits} hexadecimal digits after the `{escape[0]}`"
        raise refusal("bad-string", message, span, help=_BACKSLASH)
    code = int(escape[1:], 16)
    if code > 0x10FFFF:
        message = f"`\\{escape}` is beyond the last character, U+10FFFF"
        raise refusal("bad-string", message, span, help=_BACKSLASH)
    return chr(code)


_BACKSLASH = "write `\\\\` for a backslash, or put an r before the string"


def _by_name(span: Span, escape: str) -> str:
    try:
        return unicodedata.lookup(escape[2:-1])
    except KeyError:
        message = f"`\\{escape}` does not name a character"
        raise refusal("bad-string", message, span, help=_BACKSLASH) from None


def _bytes(span: Span, body: str, raw: bool) -> bytes:
    if not body.isascii():
        message = "a bytes literal can contain only ASCII characters"
        raise refusal("bad-string", message, span, help="write others as `\\x` and two digits")
    if not raw and "\\" in body:
        body = _BYTES_ESCAPE.sub(lambda match: _byte(span, match[1]), body)
    return body.encode("latin-1")


def _byte(span: Span, escape: str) -> str:
    if escape in _SIMPLE:
        return _SIMPLE[escape]
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    return _by_number(span, escape) if escape[0] == "x" else "\\" + escape
