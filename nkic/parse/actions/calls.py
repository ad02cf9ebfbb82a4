"""Arguments of calls and parameters of functions: sections 6 and 10 of the grammar.

Both are parsed as flat lists and ordered here, so that a wrong order gets a specific message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from nkic.base.diagnostics import CompileFailed, Label, refusal
from nkic.base.source import Span
from nkic.parse.actions.expressions import Clauses, identifier
from nkic.syntax import nodes as n

# ---- calls ---------------------------------------------------------------------------------


class CallArguments(NamedTuple):
    """A call's arguments in order."""

    span: Span
    args: tuple[n.Expression, ...]
    keywords: tuple[n.Keyword, ...]
    bare_generator: bool  # `f(x for x in y)`: without its own parentheses


class BareGenerator(NamedTuple):
    """An argument `x for x in y`, legal only as the only argument."""

    node: n.GeneratorExp


Argument: TypeAlias = n.Expression | n.Keyword | BareGenerator


def call(span: Span, func: n.Expression, arguments: CallArguments) -> n.Call:
    return n.Call(span, func, arguments.args, arguments.keywords)


def generator_argument(span: Span, elt: n.Expression, clauses: Clauses) -> BareGenerator:
    return BareGenerator(n.GeneratorExp(span, elt, clauses))


def keyword_argument(span: Span, text: str, value: n.Expression) -> n.Keyword:
    return n.Keyword(span, identifier(text), value)


def keywords_argument(span: Span, value: n.Expression) -> n.Keyword:
    return n.Keyword(span, None, value)


def call_arguments(span: Span, *items: Argument | None) -> CallArguments:
    if len(items) == 1 and isinstance(items[0], BareGenerator):
        return CallArguments(span, (replace(items[0].node, span=span),), (), True)
    return _ordered(span, items)


def call_arguments_comma(span: Span, *items: Argument) -> CallArguments:
    return _ordered(span, items)


def _ordered(span: Span, items: Iterable[Argument | None]) -> CallArguments:
    args: list[n.Expression] = []
    keywords: list[n.Keyword] = []
    unpacking: n.Keyword | None = None  # the first `**`
    for item in items:
        if isinstance(item, n.Keyword):
            keywords.append(item)
            if item.arg is None:
                unpacking = unpacking or item
        elif isinstance(item, BareGenerator):
            raise _needs_parentheses(item.node)
        elif item is not None:
            if keywords:
                _check_after_keywords(item, keywords[-1], unpacking)
            args.append(item)
    _check_repeated(keywords)
    return CallArguments(span, tuple(args), tuple(keywords), False)


def _needs_parentheses(node: n.GeneratorExp) -> CompileFailed:
    return refusal(
        "argument-order",
        "a generator expression beside other arguments needs parentheses of its own",
        node.span,
        help="write `f((x for x in y), …)`",
    )


def _check_after_keywords(item: n.Expression, last: n.Keyword, unpacking: n.Keyword | None) -> None:
    if isinstance(item, n.Starred):
        if unpacking is None:
            return
        message, last = "`*…` cannot follow `**…` in a call", unpacking
    else:
        message = "a positional argument cannot follow a keyword argument"
    raise refusal(
        "argument-order",
        message,
        item.span,
        labels=[Label(last.span, "this comes first")],
        help="move it before the keyword arguments, or give it a name",
    )


def _check_repeated(keywords: Sequence[n.Keyword]) -> None:
    seen: dict[str, n.Keyword] = {}
    for keyword in keywords:
        if keyword.arg is None:
            continue
        first = seen.setdefault(keyword.arg, keyword)
        if first is not keyword:
            raise refusal(
                "duplicate-name",
                f"the argument `{keyword.arg}` is given twice",
                keyword.span,
                labels=[Label(first.span, "first given here")],
                help="remove one of the two",
            )


# ---- parameters ----------------------------------------------------------------------------


class ParsedParameter(NamedTuple):
    """One entry of a parameter list; `kind` is "", "=", "*", "**", "/" or "bare *"."""

    span: Span
    kind: str
    arg: n.Arg | None = None
    default: n.Expression | None = None


def arg(span: Span, text: str, annotation: n.Expression | None = None) -> n.Arg:
    return n.Arg(span, identifier(text), annotation)


def plain_parameter(span: Span, name: n.Arg) -> ParsedParameter:
    return ParsedParameter(span, "", name)


def default_parameter(span: Span, name: n.Arg, default: n.Expression) -> ParsedParameter:
    return ParsedParameter(span, "=", name, default)


def rest_parameter(span: Span, name: n.Arg) -> ParsedParameter:
    return ParsedParameter(span, "*", name)


def keywords_parameter(span: Span, name: n.Arg) -> ParsedParameter:
    return ParsedParameter(span, "**", name)


def bare_star(span: Span) -> ParsedParameter:
    return ParsedParameter(span, "bare *")


def slash(span: Span) -> ParsedParameter:
    return ParsedParameter(span, "/")


def parameters(span: Span, *items: ParsedParameter | None) -> n.Arguments:
    signature = _Signature()
    for item in items:
        if item is not None:
            signature.add(item)
    return signature.finish(span)


@dataclass
class _Signature:
    """A parameter list under construction."""

    posonly: list[n.Arg] = field(default_factory=list)
    plain: list[n.Arg] = field(default_factory=list)
    defaults: list[n.Expression] = field(default_factory=list)
    kwonly: list[n.Arg] = field(default_factory=list)
    kw_defaults: list[n.Expression | None] = field(default_factory=list)
    slash: ParsedParameter | None = None
    star: ParsedParameter | None = None
    kwarg: ParsedParameter | None = None
    names: dict[str, n.Arg] = field(default_factory=dict)

    def add(self, item: ParsedParameter) -> None:
        if self.kwarg:
            raise _misplaced(item.span, "nothing can follow `**`", self.kwarg)
        if item.arg:
            self._add_name(item.arg)
        if item.kind == "/":
            self._add_slash(item)
        elif item.kind in ("*", "bare *"):
            if self.star:
                raise _misplaced(item.span, "only one `*` can be in a parameter list", self.star)
            self.star = item
        elif item.kind == "**":
            self._check_bare_star()
            self.kwarg = item
        elif item.arg:
            self._add_plain(item, item.arg)

    def _add_name(self, name: n.Arg) -> None:
        first = self.names.setdefault(name.name, name)
        if first is not name:
            raise refusal(
                "duplicate-name",
                f"the parameter `{name.name}` occurs twice",
                name.span,
                labels=[Label(first.span, "first here")],
                help="give one of the two another name",
            )

    def _add_slash(self, item: ParsedParameter) -> None:
        if self.slash or self.star:
            message = "`/` can occur once, before any `*`"
            raise _misplaced(item.span, message, self.slash or self.star)
        if not self.plain:
            raise _misplaced(item.span, "at least one parameter must precede `/`", None)
        self.slash, self.posonly, self.plain = item, self.plain, []

    def _add_plain(self, item: ParsedParameter, name: n.Arg) -> None:
        if self.star:
            self.kwonly.append(name)
            self.kw_defaults.append(item.default)
            return
        if item.default:
            self.defaults.append(item.default)
        elif self.defaults:
            raise refusal(
                "parameter-order",
                f"the parameter `{name.name}` without a default follows one with a default",
                name.span,
                labels=[Label(self.defaults[-1].span, "a default already here")],
                help=f"give `{name.name}` a default, or move it to the front",
            )
        self.plain.append(name)

    def _check_bare_star(self) -> None:
        if self.star and self.star.kind == "bare *" and not self.kwonly:
            raise refusal(
                "parameter-order",
                "a `*` without a name must be followed by a named parameter",
                self.star.span,
                help="remove the `*`, or write parameters after it that must be given by name",
            )

    def finish(self, span: Span) -> n.Arguments:
        self._check_bare_star()
        return n.Arguments(
            span,
            tuple(self.posonly),
            tuple(self.plain),
            self.star.arg if self.star else None,
            tuple(self.kwonly),
            tuple(self.kw_defaults),
            self.kwarg.arg if self.kwarg else None,
            tuple(self.defaults),
        )


def _misplaced(span: Span, message: str, earlier: ParsedParameter | None) -> CompileFailed:
    labels = [Label(earlier.span, "the earlier one")] if earlier else []
    help = "the order is: positional-only, `/`, ordinary, `*` or `*args`, keyword-only, `**kwargs`"
    return refusal("parameter-order", message, span, labels=labels, help=help)
