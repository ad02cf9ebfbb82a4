"""The patterns of `match` statements."""

from __future__ import annotations

import typing

from nkic.syntax.base import Node, node
from nkic.syntax.expressions import Expression


@node
class MatchValue(Node):
    """A literal or dotted name, compared with `==`."""

    value: Expression


@node
class MatchSingleton(Node):
    """None, True or False, compared with `is`."""

    value: bool | None


@node
class MatchSequence(Node):
    """`[a, b, *rest]`, with or without brackets."""

    patterns: tuple[Pattern, ...]


@node
class MatchMapping(Node):
    """`{key: pattern, **rest}`."""

    keys: tuple[Expression, ...]
    patterns: tuple[Pattern, ...]
    rest: str | None = None


@node
class MatchClass(Node):
    """`Class(pattern, name=pattern)`."""

    cls: Expression
    patterns: tuple[Pattern, ...]
    kwd_attrs: tuple[str, ...]
    kwd_patterns: tuple[Pattern, ...]


@node
class MatchStar(Node):
    """`*name` in a sequence pattern; the name is None for `*_`."""

    name: str | None


@node
class MatchAs(Node):
    """`pattern as name`, a bare name (no pattern), or the wildcard `_` (neither)."""

    pattern: Pattern | None = None
    name: str | None = None


@node
class MatchOr(Node):
    """`a | b`."""

    patterns: tuple[Pattern, ...]


Pattern: typing.TypeAlias = (
    MatchValue
    | MatchSingleton
    | MatchSequence
    | MatchMapping
    | MatchClass
    | MatchStar
    | MatchAs
    | MatchOr
)
