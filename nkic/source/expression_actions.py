"""Expressions: what makes a node of each rule of the grammar's sections 8 to 12, by its name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import Span
from nkic.source import nodes as n

# ---- Valid targets of `=`, `for`, `as` and `del` ------------------------------------------------

_PLAIN = (n.Name, n.Attribute, n.Subscript)
_SINGULAR = {
    n.Constant: "a constant",
    n.Call: "the result of a call",
    n.BinOp: "the result of an operator",
    n.UnaryOp: "the result of an operator",
    n.BoolOp: "the result of an operator",
    n.Compare: "a comparison",
    n.IfExp: "a conditional expression",
    n.Lambda: "a lambda",
    n.Await: "the result of `await`",
    n.Yield: "the result of `yield`",
    n.YieldFrom: "the result of `yield`",
    n.NamedExpr: "the result of `:=`",
    n.Dict: "a dict",
    n.Set: "a set",
    n.ListComp: "a comprehension",
    n.SetComp: "a comprehension",
    n.DictComp: "a comprehension",
    n.GeneratorExp: "a generator expression",
    n.JoinedStr: "an f-string",
    n.Tuple: "a tuple",
    n.List: "a list",
    n.Starred: "a starred expression",
}
_TARGETS = "a name, `a.b`, `a[i]`, or a list of these"
OR_COMPARE = "; or `==` to compare"


def as_target(node: n.Expression, advice: str = "") -> n.Expression:
    """Return `node` if it can be assigned to; otherwise raise at the part that cannot."""
    waiting = [node]
    if isinstance(node, n.Starred):
        raise _lone_star(node)
    while waiting:
        target = waiting.pop()
        if isinstance(target, (n.Tuple, n.List)):
            _check_stars(target)
            waiting += reversed(target.elts)
        elif isinstance(target, n.Starred):
            waiting.append(target.value)
        elif not isinstance(target, _PLAIN):
            raise not_assignable(target, "cannot be assigned to", _TARGETS + advice)
    return node


def as_deleted(node: n.Expression) -> n.Expression:
    """Return `node` if it can be deleted."""
    waiting = [node]
    while waiting:
        target = waiting.pop()
        if isinstance(target, (n.Tuple, n.List)):
            waiting += reversed(target.elts)
        elif not isinstance(target, _PLAIN):
            raise not_assignable(target, "cannot be deleted", _TARGETS)
    return node


def as_single_target(node: n.Expression, action: str) -> n.Expression:
    """Return `node` if it is one name, attribute or subscript; `action` words the error."""
    if isinstance(node, _PLAIN):
        return node
    raise not_assignable(node, f"cannot {action}", "a name, `a.b` or `a[i]`")


def not_assignable(node: n.Expression, verdict: str, expected: str) -> CompileFailed:
    thing = _SINGULAR.get(type(node), "this")
    if isinstance(node, n.Constant) and isinstance(node.value, bool | None):
        thing = f"`{node.value}`"
    return refusal("not-assignable", f"{thing} {verdict}", node.span, help=f"write {expected}")


def _check_stars(display: n.Tuple | n.List) -> None:
    stars = [item for item in display.elts if isinstance(item, n.Starred)]
    if len(stars) > 1:
        message = "only one starred name can take the remaining elements"
        raise refusal("bad-star", message, stars[1].span, help="keep only one star")


def _lone_star(node: n.Starred) -> CompileFailed:
    message = "a starred name must be in a list or tuple of targets"
    return refusal("bad-star", message, node.span, help="add a comma: `*rest, = values`")


# ---- Strings and f-strings: section 12 of the grammar -------------------------------------------

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
    is_bytes = [isinstance(p, n.Constant) and isinstance(p.value, bytes) for p in pieces]
    if any(is_bytes) and not all(is_bytes):
        odd = next(p for p, b in zip(pieces, is_bytes, strict=True) if b is not is_bytes[0])
        message = "adjacent strings must be all text or all bytes"
        raise refusal("bad-string", message, odd.span, help="put an operator or comma between")
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
        try:
            return unicodedata.lookup(escape[2:-1])
        except KeyError:
            message = f"`\\{escape}` does not name a character"
            raise refusal("bad-string", message, span, help=_BACKSLASH) from None
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


# ---- Expressions: sections 8 to 11 of the grammar -----------------------------------------------

Item: TypeAlias = tuple[n.Expression | None, n.Expression]  # of a dict; no key for `**value`
Clauses: TypeAlias = tuple[n.Comprehension, ...]


def parts(_: Span, *items: Any) -> tuple[Any, ...]:
    """Return all parts of a rule, which its own rule puts into a node."""
    return items


def of_all(kind: Callable[..., n.Node]) -> Callable[..., n.Node]:
    """Return the function that makes a node of all parts of a rule."""
    return lambda span, *items: kind(span, items)


def present(items: tuple[n.Expression | None, ...]) -> tuple[n.Expression, ...]:
    """Return the items without the gap that an empty list leaves."""
    return tuple(item for item in items if item is not None)


def identifier(text: str) -> str:
    """Return a name in the normal form in which Python compares it."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


# ---- names and constants -------------------------------------------------------------------


def number(span: Span, text: str) -> n.Constant:
    digits = text.replace("_", "").lower()
    if digits.startswith(("0x", "0o", "0b")):
        return n.Constant(span, int(digits, 0))
    if digits.endswith("j"):
        return n.Constant(span, complex(digits))
    if "." in digits or "e" in digits:
        return n.Constant(span, float(digits))
    return n.Constant(span, _decimal(span, digits))


def _decimal(span: Span, digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # longer than sys.get_int_max_str_digits()
        message = f"a decimal number of {len(digits)} digits is too long to convert"
        raise refusal("bad-number", message, span, help="write it in hexadecimal") from None


none, true, false, ellipsis = (partial(n.Constant, value=v) for v in (None, True, False, ...))


# ---- operators -----------------------------------------------------------------------------


def _binary(op: str) -> Callable[..., n.BinOp]:
    return lambda span, left, right: n.BinOp(span, left, op, right)


bit_or, bit_xor, bit_and, power_of = map(_binary, ("|", "^", "&", "**"))


# ---- displays ------------------------------------------------------------------------------


def dict_(span: Span, *items: Item | None) -> n.Dict:
    pairs = [item for item in items if item is not None]
    return n.Dict(span, tuple(key for key, _ in pairs), tuple(value for _, value in pairs))


# ---- comprehensions ------------------------------------------------------------------------


def dict_comprehension(span: Span, pair: Item, clauses: Clauses) -> n.DictComp:
    key, value = pair
    assert key is not None  # the grammar has a dict_pair here
    return n.DictComp(span, key, value, clauses)


def comprehension_clause(
    span: Span, target: n.Expression, iterable: n.Expression, *ifs: n.Expression
) -> n.Comprehension:
    return n.Comprehension(span, as_target(target), iterable, ifs)


def async_clause(
    span: Span, target: n.Expression, iterable: n.Expression, *ifs: n.Expression
) -> n.Comprehension:
    return n.Comprehension(span, as_target(target), iterable, ifs, is_async=True)


# ---- Rules that only put their parts into a node ------------------------------------------------

RULES: dict[str, Callable[..., Any]] = {
    "cooked_text": lambda span, text: (n.Constant(span, _unescaped(span, text)),),
    "raw_text": lambda span, text: (n.Constant(span, text),),
    "name": lambda span, text: n.Name(span, identifier(text)),
    "conditional": lambda span, body, test, orelse: n.IfExp(span, test, body, orelse),
    "not_": lambda span, operand: n.UnaryOp(span, "not", operand),
    "or_": lambda span, *values: n.BoolOp(span, "or", values),
    "and_": lambda span, *values: n.BoolOp(span, "and", values),
    "compare": lambda span, left, pairs: n.Compare(span, left, *pairs),
    "comparisons": lambda span, *parts: (parts[::2], parts[1::2]),
    "comparator": lambda span, first, second: f"{first} {second}",
    "attribute": lambda span, value, attr: n.Attribute(span, value, identifier(attr)),
    "tuple_": lambda span, *items: n.Tuple(span, present(items)),
    "list_": lambda span, *items: n.List(span, present(items)),
    "dict_pair": lambda span, key, value: (key, value),
    "dict_unpacking": lambda span, value: (None, value),
    "walrus": n.NamedExpr,
    "lambda_": n.Lambda,
    "binary": n.BinOp,
    "unary": n.UnaryOp,
    "await_": n.Await,
    "yield_expression": n.Yield,
    "yield_from": n.YieldFrom,
    "slice_": n.Slice,
    "list_comprehension": n.ListComp,
    "set_comprehension": n.SetComp,
    "subscript": n.Subscript,
    "starred": n.Starred,
    "generator": n.GeneratorExp,
    "set_": of_all(n.Set),
    "comprehension_clauses": parts,
}
