"""Patterns of `match`: section 7 of the grammar."""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import Span
from nkic.parse.actions.expressions import identifier
from nkic.parse.actions.statements import Block
from nkic.syntax import nodes as n


class Pair(NamedTuple):
    """A pair `key: pattern`, or `**name` without key and pattern."""

    span: Span
    key: n.Expression | None
    pattern: n.Pattern | None
    name: str | None = None


class ByName(NamedTuple):
    """A pair `name=pattern` in a class pattern."""

    span: Span
    name: str
    pattern: n.Pattern


# ---- the statement -------------------------------------------------------------------------


def match_statement(span: Span, subject: n.Expression, cases: tuple[n.MatchCase, ...]) -> n.Match:
    return n.Match(span, subject, cases)


def cases(span: Span, *blocks: n.MatchCase) -> tuple[n.MatchCase, ...]:
    return blocks


def case_block(
    span: Span, pattern: n.Pattern, guard: n.Expression | None, body: Block
) -> n.MatchCase:
    return n.MatchCase(span, pattern, guard, body)


# ---- patterns ------------------------------------------------------------------------------


def match_as(span: Span, pattern: n.Pattern, text: str) -> n.MatchAs:
    if text == "_":
        message = "`_` matches anything and cannot be the name after `as`"
        raise _bad(message, span, "choose another name, or leave out `as _`")
    return n.MatchAs(span, pattern, identifier(text))


def match_or(span: Span, *patterns: n.Pattern) -> n.MatchOr:
    return n.MatchOr(span, patterns)


def match_capture(span: Span, text: str) -> n.MatchAs:
    return n.MatchAs(span, None, None if text == "_" else identifier(text))


def match_star(span: Span, text: str) -> n.MatchStar:
    return n.MatchStar(span, None if text == "_" else identifier(text))


def match_value(span: Span, value: n.Expression) -> n.MatchValue:
    _check_literal(value)
    return n.MatchValue(span, value)


def match_none(span: Span) -> n.MatchSingleton:
    return n.MatchSingleton(span, None)


def match_true(span: Span) -> n.MatchSingleton:
    return n.MatchSingleton(span, True)


def match_false(span: Span) -> n.MatchSingleton:
    return n.MatchSingleton(span, False)


def open_patterns(span: Span, *patterns: n.Pattern) -> tuple[n.Pattern, ...]:
    stars = [pattern for pattern in patterns if isinstance(pattern, n.MatchStar)]
    if len(stars) > 1:
        message = "only one starred name can match the remaining elements"
        raise _bad(message, stars[1].span, "keep only one star")
    return patterns


def match_sequence(span: Span, patterns: tuple[n.Pattern, ...] = ()) -> n.MatchSequence:
    return n.MatchSequence(span, patterns)


def mapping_pair(span: Span, key: n.Expression, pattern: n.Pattern) -> Pair:
    _check_literal(key)
    return Pair(span, key, pattern)


def mapping_rest(span: Span, text: str) -> Pair:
    return Pair(span, None, None, identifier(text))


def match_mapping(span: Span, *pairs: Pair) -> n.MatchMapping:
    for pair in pairs[:-1]:
        if pair.name is not None:
            raise _bad("`**rest` must be the last entry of the pattern", pair.span, "move it")
    rest = pairs[-1].name if pairs else None
    return n.MatchMapping(
        span,
        tuple(pair.key for pair in pairs if pair.key),
        tuple(pair.pattern for pair in pairs if pair.pattern),
        rest,
    )


def class_keyword(span: Span, text: str, pattern: n.Pattern) -> ByName:
    return ByName(span, identifier(text), pattern)


def match_class(span: Span, cls: n.Expression, *items: n.Pattern | ByName) -> n.MatchClass:
    named = [item for item in items if isinstance(item, ByName)]
    plain = [item for item in items if not isinstance(item, ByName)]
    if any(isinstance(item, ByName) for item in items[: len(plain)]):
        late = plain[-1]
        message = "a pattern by position cannot follow a pattern by name"
        raise _bad(message, late.span, "move it to the front, or give it a name")
    names = tuple(item.name for item in named)
    return n.MatchClass(span, cls, tuple(plain), names, tuple(item.pattern for item in named))


# ---- literals ------------------------------------------------------------------------------


def negative(span: Span, value: n.Constant) -> n.UnaryOp:
    return n.UnaryOp(span, "-", value)


def complex_sum(span: Span, real: n.Expression, imaginary: n.Constant) -> n.BinOp:
    return _complex(span, real, "+", imaginary)


def complex_difference(span: Span, real: n.Expression, imaginary: n.Constant) -> n.BinOp:
    return _complex(span, real, "-", imaginary)


def _complex(span: Span, real: n.Expression, op: str, imaginary: n.Constant) -> n.BinOp:
    plain = real.operand if isinstance(real, n.UnaryOp) else real
    if not isinstance(imaginary.value, complex):
        message = f"a pattern can only compute a complex number: `{imaginary.value!r}` is real"
        raise _bad(message, imaginary.span, "write the result, or compare in a guard")
    if isinstance(plain, n.Constant) and isinstance(plain.value, complex):
        message = "a complex number starts with its real part"
        raise _bad(message, real.span, "write `real + imaginaryj`")
    return n.BinOp(span, real, op, imaginary)


def _check_literal(value: n.Expression) -> None:
    if isinstance(value, n.JoinedStr):
        message = "an f-string cannot be a pattern"
        raise _bad(message, value.span, "compare in a guard: `case x if x == …`")


def _bad(message: str, span: Span, help: str) -> CompileFailed:
    return refusal("bad-match-pattern", message, span, help=help)
