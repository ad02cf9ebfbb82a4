"""Statements: what makes a node of each rule of the grammar's sections 2 to 7, by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

from nkic.base.diagnostics import CompileFailed, Label, refusal
from nkic.base.source import Span
from nkic.source import expression_actions
from nkic.source import nodes as n
from nkic.source.expression_actions import (
    OR_COMPARE,
    Clauses,
    as_deleted,
    as_single_target,
    as_target,
    identifier,
    of_all,
    parts,
)
from nkic.source.parser import Actions, Parser, Tables, load

# ---- Arguments of calls and parameters of functions: sections 6 and 10 of the grammar -----------
# Both are parsed as flat lists and ordered here, so that a wrong order gets a specific message.


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


def generator_argument(span: Span, elt: n.Expression, clauses: Clauses) -> BareGenerator:
    return BareGenerator(n.GeneratorExp(span, elt, clauses))


def call(span: Span, func: n.Expression, arguments: CallArguments) -> n.Call:
    return n.Call(span, func, arguments.args, arguments.keywords)


def call_arguments(span: Span, *items: Argument | None) -> CallArguments:
    if len(items) == 1 and isinstance(items[0], BareGenerator):
        return CallArguments(span, (replace(items[0].node, span=span),), (), True)
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
    message = "a generator expression beside other arguments needs parentheses of its own"
    return refusal("argument-order", message, node.span, help="write `f((x for x in y), …)`")


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


def _parameter(kind: str) -> Callable[..., ParsedParameter]:
    return lambda span, name=None, default=None: ParsedParameter(span, kind, name, default)


plain_parameter, default_parameter = _parameter(""), _parameter("=")
rest_parameter, keywords_parameter = _parameter("*"), _parameter("**")
bare_star, slash = _parameter("bare *"), _parameter("/")


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
            if self.slash or self.star:
                message = "`/` can occur once, before any `*`"
                raise _misplaced(item.span, message, self.slash or self.star)
            if not self.plain:
                raise _misplaced(item.span, "at least one parameter must precede `/`", None)
            self.slash, self.posonly, self.plain = item, self.plain, []
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
            message = "a `*` without a name must be followed by a named parameter"
            help = "remove the `*`, or write parameters after it that must be given by name"
            raise refusal("parameter-order", message, self.star.span, help=help)

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


# ---- Statements: sections 2 to 5 of the grammar -------------------------------------------------

Block: TypeAlias = tuple[n.Statement, ...]
Handlers: TypeAlias = tuple[n.ExceptHandler, ...]
Aliases: TypeAlias = tuple[n.Alias, ...]


# ---- the file and its blocks ---------------------------------------------------------------


def statements(span: Span, *items: n.Statement | Block) -> Block:
    body: list[n.Statement] = []
    for item in items:
        if isinstance(item, tuple):
            body += item
        else:
            body.append(item)
    return tuple(body)


# ---- simple statements ---------------------------------------------------------------------


def assign(span: Span, *targets_and_value: n.Expression) -> n.Assign:
    *targets, value = targets_and_value
    return n.Assign(span, tuple(as_target(target, OR_COMPARE) for target in targets), value)


def aug_assign(span: Span, target: n.Expression, op: str, value: n.Expression) -> n.AugAssign:
    as_single_target(target, f"be the target of `{op}`")
    return n.AugAssign(span, target, op.removesuffix("="), value)


def ann_assign(
    span: Span, target: n.Expression, annotation: n.Expression, value: n.Expression | None
) -> n.AnnAssign:
    as_single_target(target, "be annotated")
    in_parentheses = target.span[:3] != span[:3]
    simple = isinstance(target, n.Name) and not in_parentheses
    return n.AnnAssign(span, target, annotation, value, simple)


def del_statement(span: Span, *targets: n.Expression) -> n.Delete:
    return n.Delete(span, tuple(as_deleted(target) for target in targets))


def alias(span: Span, text: str, asname: str | None) -> n.Alias:
    return n.Alias(span, identifier(text), identifier(asname) if asname else None)


dotted_alias = alias


# ---- compound statements -------------------------------------------------------------------


class Branch(NamedTuple):
    """One `elif`."""

    span: Span
    test: n.Expression
    body: Block


def if_statement(
    span: Span, test: n.Expression, body: Block, elifs: tuple[Branch, ...], orelse: Block | None
) -> n.If:
    otherwise = orelse or ()
    for branch in reversed(elifs):
        otherwise = (n.If(branch.span.to(span), branch.test, branch.body, otherwise),)
    return n.If(span, test, body, otherwise)


def for_statement(
    span: Span, target: n.Expression, iterable: n.Expression, body: Block, orelse: Block | None
) -> n.For:
    return n.For(span, as_target(target), iterable, body, orelse or ())


def with_item(span: Span, context: n.Expression, target: n.Expression | None) -> n.WithItem:
    return n.WithItem(span, context, as_target(target) if target else None)


# ---- try -----------------------------------------------------------------------------------


def try_statement(
    span: Span, body: Block, handlers: Handlers, orelse: Block | None, final: Block | None
) -> n.Try:
    for handler in handlers[:-1]:
        if handler.type is None:
            raise refusal(
                "misplaced-clause",
                "an `except` for everything must be the last one",
                handler.span._replace(
                    end_line=handler.span.line, end_column=handler.span.column + 6
                ),
                help="move it after the others, or name the exceptions that it handles",
            )
    return n.Try(span, body, handlers, orelse or (), final or ())


def try_star(
    span: Span, body: Block, handlers: Handlers, orelse: Block | None, final: Block | None
) -> n.Try:
    return n.Try(span, body, handlers, orelse or (), final or (), is_star=True)


def handler(span: Span, type: n.Expression, name: str | None, body: Block) -> n.ExceptHandler:
    return n.ExceptHandler(span, type, identifier(name) if name else None, body)


# ---- definitions ---------------------------------------------------------------------------


def function(
    span: Span,
    name: n.Name,
    params: tuple[n.TypeParam, ...] | None,
    args: n.Arguments,
    returns: n.Expression | None,
    body: Block,
) -> n.FunctionDef:
    return n.FunctionDef(
        span, name.id, name.span, args, body, returns=returns, type_params=params or ()
    )


def class_definition(
    span: Span,
    name: n.Name,
    params: tuple[n.TypeParam, ...] | None,
    arguments: CallArguments | None,
    body: Block,
) -> n.ClassDef:
    if arguments and arguments.bare_generator:
        message = "a generator expression as a base class needs parentheses of its own"
        raise refusal("argument-order", message, arguments.span, help="name the base classes")
    bases, keywords = (arguments.args, arguments.keywords) if arguments else ((), ())
    return n.ClassDef(span, name.id, name.span, bases, keywords, body, type_params=params or ())


# ---- Patterns of `match`: section 7 of the grammar ----------------------------------------------


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


def match_as(span: Span, pattern: n.Pattern, text: str) -> n.MatchAs:
    if text == "_":
        message = "`_` matches anything and cannot be the name after `as`"
        raise _bad(message, span, "choose another name, or leave out `as _`")
    return n.MatchAs(span, pattern, identifier(text))


def match_capture(span: Span, text: str) -> n.MatchAs:
    return n.MatchAs(span, None, None if text == "_" else identifier(text))


def match_value(span: Span, value: n.Expression) -> n.MatchValue:
    _check_literal(value)
    return n.MatchValue(span, value)


match_none, match_true, match_false = (
    partial(n.MatchSingleton, value=value) for value in (None, True, False)
)


def open_patterns(span: Span, *patterns: n.Pattern) -> tuple[n.Pattern, ...]:
    stars = [pattern for pattern in patterns if isinstance(pattern, n.MatchStar)]
    if len(stars) > 1:
        message = "only one starred name can match the remaining elements"
        raise _bad(message, stars[1].span, "keep only one star")
    return patterns


def mapping_pair(span: Span, key: n.Expression, pattern: n.Pattern) -> Pair:
    _check_literal(key)
    return Pair(span, key, pattern)


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


def match_class(span: Span, cls: n.Expression, *items: n.Pattern | ByName) -> n.MatchClass:
    named = [item for item in items if isinstance(item, ByName)]
    plain = [item for item in items if not isinstance(item, ByName)]
    if any(isinstance(item, ByName) for item in items[: len(plain)]):
        late = plain[-1]
        message = "a pattern by position cannot follow a pattern by name"
        raise _bad(message, late.span, "move it to the front, or give it a name")
    names = tuple(item.name for item in named)
    return n.MatchClass(span, cls, tuple(plain), names, tuple(item.pattern for item in named))


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


# ---- Rules that only put their parts into a node ------------------------------------------------

RULES: dict[str, Callable[..., Any]] = {
    "keyword_argument": lambda span, text, value: n.Keyword(span, identifier(text), value),
    "keywords_argument": lambda span, value: n.Keyword(span, None, value),
    "call_arguments_comma": lambda span, *items: _ordered(span, items),
    "arg": lambda span, text, annotation=None: n.Arg(span, identifier(text), annotation),
    "file": lambda span, body: n.Module(span, body or ()),
    "type_alias": lambda span, name, params, value: n.TypeAlias(span, name, params or (), value),
    "global_statement": lambda span, *names: n.Global(span, tuple(map(identifier, names))),
    "nonlocal_statement": lambda span, *names: n.Nonlocal(span, tuple(map(identifier, names))),
    "import_from": lambda span, module, names: n.ImportFrom(span, module, names, 0),
    "import_relative": lambda span, level, module, names: n.ImportFrom(span, module, names, level),
    "import_package": lambda span, level, names: n.ImportFrom(span, None, names, level),
    "dotted_name": lambda span, *names: ".".join(names),
    "dots": lambda span, *texts: len("".join(texts)),
    "import_star": lambda span: (n.Alias(span, "*"),),
    "while_statement": lambda span, test, body, orelse: n.While(span, test, body, orelse or ()),
    "async_statement": lambda span, statement: replace(statement, span=span, is_async=True),
    "try_finally": lambda span, body, final: n.Try(span, body, (), (), final),
    "bare_handler": lambda span, body: n.ExceptHandler(span, None, None, body),
    "decorated": lambda span, decorators, definition: replace(definition, decorators=decorators),
    "type_var": lambda span, name, bound: n.TypeVar(span, identifier(name), bound),
    "type_var_tuple": lambda span, name: n.TypeVarTuple(span, identifier(name)),
    "param_spec": lambda span, name: n.ParamSpec(span, identifier(name)),
    "match_star": lambda span, text: n.MatchStar(span, None if text == "_" else identifier(text)),
    "match_sequence": lambda span, patterns=(): n.MatchSequence(span, patterns),
    "mapping_rest": lambda span, text: Pair(span, None, None, identifier(text)),
    "class_keyword": lambda span, text, pattern: ByName(span, identifier(text), pattern),
    "negative": lambda span, value: n.UnaryOp(span, "-", value),
    "complex_sum": lambda span, real, imaginary: _complex(span, real, "+", imaginary),
    "complex_difference": lambda span, real, imaginary: _complex(span, real, "-", imaginary),
    "expression_statement": n.Expr,
    "raise_statement": n.Raise,
    "return_statement": n.Return,
    "assert_statement": n.Assert,
    "pass_statement": n.Pass,
    "break_statement": n.Break,
    "continue_statement": n.Continue,
    "elif_block": Branch,
    "with_statement": n.With,
    "match_statement": n.Match,
    "case_block": n.MatchCase,
    "import_statement": of_all(n.Import),
    "match_or": of_all(n.MatchOr),
    **dict.fromkeys(("simple_line", "imported", "elifs", "with_items", "decorators"), parts),
    **dict.fromkeys(("type_params", "cases", "handlers", "star_handlers"), parts),
}

# ---- The parser ---------------------------------------------------------------------------------


def by_rule(tables: Tables) -> Actions:
    """Return a function for every rule of the grammar that needs one: its namesake, or its row."""
    functions = {**vars(expression_actions), **globals(), **expression_actions.RULES, **RULES}
    names = {rule.action for rule in tables.rules} - {"", "+"}
    return {name: functions[name] for name in sorted(names)}


@cache
def parser() -> Parser:
    tables = load()
    return Parser(tables, by_rule(tables))
