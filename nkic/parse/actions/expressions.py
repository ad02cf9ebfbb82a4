"""Expressions: one function per rule of the grammar's sections 8 to 11, with the rule's name."""

from __future__ import annotations

import unicodedata
from typing import TypeAlias

from nkic.base.diagnostics import refusal
from nkic.base.source import Span
from nkic.parse.targets import as_target
from nkic.syntax import nodes as n

Item: TypeAlias = tuple[n.Expression | None, n.Expression]  # of a dict; no key for `**value`
Clauses: TypeAlias = tuple[n.Comprehension, ...]


def present(items: tuple[n.Expression | None, ...]) -> tuple[n.Expression, ...]:
    """Return the items without the gap that an empty list leaves."""
    return tuple(item for item in items if item is not None)


def identifier(text: str) -> str:
    """Return a name in the normal form in which Python compares it."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


# ---- names and constants -------------------------------------------------------------------


def name(span: Span, text: str) -> n.Name:
    return n.Name(span, identifier(text))


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


def none(span: Span) -> n.Constant:
    return n.Constant(span, None)


def true(span: Span) -> n.Constant:
    return n.Constant(span, True)


def false(span: Span) -> n.Constant:
    return n.Constant(span, False)


def ellipsis(span: Span) -> n.Constant:
    return n.Constant(span, ...)


# ---- operators -----------------------------------------------------------------------------


def walrus(span: Span, target: n.Name, value: n.Expression) -> n.NamedExpr:
    return n.NamedExpr(span, target, value)


def conditional(
    span: Span, body: n.Expression, test: n.Expression, orelse: n.Expression
) -> n.IfExp:
    return n.IfExp(span, test, body, orelse)


def lambda_(span: Span, args: n.Arguments, body: n.Expression) -> n.Lambda:
    return n.Lambda(span, args, body)


def or_(span: Span, *values: n.Expression) -> n.BoolOp:
    return n.BoolOp(span, "or", values)


def and_(span: Span, *values: n.Expression) -> n.BoolOp:
    return n.BoolOp(span, "and", values)


def not_(span: Span, operand: n.Expression) -> n.UnaryOp:
    return n.UnaryOp(span, "not", operand)


def compare(
    span: Span, left: n.Expression, pairs: tuple[tuple[str, ...], tuple[n.Expression, ...]]
) -> n.Compare:
    return n.Compare(span, left, *pairs)


def comparisons(
    span: Span, *parts: str | n.Expression
) -> tuple[tuple[str | n.Expression, ...], tuple[str | n.Expression, ...]]:
    return parts[::2], parts[1::2]


def comparator(span: Span, first: str, second: str) -> str:
    return f"{first} {second}"


def binary(span: Span, left: n.Expression, op: str, right: n.Expression) -> n.BinOp:
    return n.BinOp(span, left, op, right)


def bit_or(span: Span, left: n.Expression, right: n.Expression) -> n.BinOp:
    return n.BinOp(span, left, "|", right)


def bit_xor(span: Span, left: n.Expression, right: n.Expression) -> n.BinOp:
    return n.BinOp(span, left, "^", right)


def bit_and(span: Span, left: n.Expression, right: n.Expression) -> n.BinOp:
    return n.BinOp(span, left, "&", right)


def power_of(span: Span, left: n.Expression, right: n.Expression) -> n.BinOp:
    return n.BinOp(span, left, "**", right)


def unary(span: Span, op: str, operand: n.Expression) -> n.UnaryOp:
    return n.UnaryOp(span, op, operand)


def await_(span: Span, value: n.Expression) -> n.Await:
    return n.Await(span, value)


def yield_expression(span: Span, value: n.Expression | None) -> n.Yield:
    return n.Yield(span, value)


def yield_from(span: Span, value: n.Expression) -> n.YieldFrom:
    return n.YieldFrom(span, value)


# ---- attributes and subscripts -------------------------------------------------------------


def attribute(span: Span, value: n.Expression, attr: str) -> n.Attribute:
    return n.Attribute(span, value, identifier(attr))


def subscript(span: Span, value: n.Expression, index: n.Expression) -> n.Subscript:
    return n.Subscript(span, value, index)


def slice_(
    span: Span,
    lower: n.Expression | None,
    upper: n.Expression | None,
    step: n.Expression | None,
) -> n.Slice:
    return n.Slice(span, lower, upper, step)


# ---- displays ------------------------------------------------------------------------------


def starred(span: Span, value: n.Expression) -> n.Starred:
    return n.Starred(span, value)


def tuple_(span: Span, *items: n.Expression | None) -> n.Tuple:
    return n.Tuple(span, present(items))


def list_(span: Span, *items: n.Expression | None) -> n.List:
    return n.List(span, present(items))


def set_(span: Span, *items: n.Expression) -> n.Set:
    return n.Set(span, items)


def dict_(span: Span, *items: Item | None) -> n.Dict:
    pairs = [item for item in items if item is not None]
    return n.Dict(span, tuple(key for key, _ in pairs), tuple(value for _, value in pairs))


def dict_pair(span: Span, key: n.Expression, value: n.Expression) -> Item:
    return key, value


def dict_unpacking(span: Span, value: n.Expression) -> Item:
    return None, value


# ---- comprehensions ------------------------------------------------------------------------


def generator(span: Span, elt: n.Expression, clauses: Clauses) -> n.GeneratorExp:
    return n.GeneratorExp(span, elt, clauses)


def list_comprehension(span: Span, elt: n.Expression, clauses: Clauses) -> n.ListComp:
    return n.ListComp(span, elt, clauses)


def set_comprehension(span: Span, elt: n.Expression, clauses: Clauses) -> n.SetComp:
    return n.SetComp(span, elt, clauses)


def dict_comprehension(span: Span, pair: Item, clauses: Clauses) -> n.DictComp:
    key, value = pair
    assert key is not None  # the grammar has a dict_pair here
    return n.DictComp(span, key, value, clauses)


def comprehension_clauses(span: Span, *clauses: n.Comprehension) -> Clauses:
    return clauses


def comprehension_clause(
    span: Span, target: n.Expression, iterable: n.Expression, *ifs: n.Expression
) -> n.Comprehension:
    return n.Comprehension(span, as_target(target), iterable, ifs)


def async_clause(
    span: Span, target: n.Expression, iterable: n.Expression, *ifs: n.Expression
) -> n.Comprehension:
    return n.Comprehension(span, as_target(target), iterable, ifs, is_async=True)
