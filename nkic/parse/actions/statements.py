"""Statements: one function per rule of the grammar's sections 2 to 6, with the rule's name."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from nkic.base.diagnostics import refusal
from nkic.base.source import Span
from nkic.parse.actions.calls import CallArguments
from nkic.parse.actions.expressions import identifier
from nkic.parse.targets import OR_COMPARE, as_deleted, as_single_target, as_target
from nkic.syntax import nodes as n

Block: TypeAlias = tuple[n.Statement, ...]
Handlers: TypeAlias = tuple[n.ExceptHandler, ...]
Aliases: TypeAlias = tuple[n.Alias, ...]


# ---- the file and its blocks ---------------------------------------------------------------


def file(span: Span, body: Block | None) -> n.Module:
    return n.Module(span, body or ())


def statements(span: Span, *items: n.Statement | Block) -> Block:
    body: list[n.Statement] = []
    for item in items:
        if isinstance(item, tuple):
            body += item
        else:
            body.append(item)
    return tuple(body)


def simple_line(span: Span, *items: n.Statement) -> Block:
    return items


# ---- simple statements ---------------------------------------------------------------------


def expression_statement(span: Span, value: n.Expression) -> n.Expr:
    return n.Expr(span, value)


def assign(span: Span, *parts: n.Expression) -> n.Assign:
    *targets, value = parts
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


def type_alias(
    span: Span, name: n.Name, params: tuple[n.TypeParam, ...] | None, value: n.Expression
) -> n.TypeAlias:
    return n.TypeAlias(span, name, params or (), value)


def return_statement(span: Span, value: n.Expression | None) -> n.Return:
    return n.Return(span, value)


def raise_statement(
    span: Span, exc: n.Expression | None, cause: n.Expression | None = None
) -> n.Raise:
    return n.Raise(span, exc, cause)


def assert_statement(span: Span, test: n.Expression, msg: n.Expression | None) -> n.Assert:
    return n.Assert(span, test, msg)


def del_statement(span: Span, *targets: n.Expression) -> n.Delete:
    return n.Delete(span, tuple(as_deleted(target) for target in targets))


def pass_statement(span: Span) -> n.Pass:
    return n.Pass(span)


def break_statement(span: Span) -> n.Break:
    return n.Break(span)


def continue_statement(span: Span) -> n.Continue:
    return n.Continue(span)


def global_statement(span: Span, *names: str) -> n.Global:
    return n.Global(span, tuple(map(identifier, names)))


def nonlocal_statement(span: Span, *names: str) -> n.Nonlocal:
    return n.Nonlocal(span, tuple(map(identifier, names)))


# ---- imports -------------------------------------------------------------------------------


def import_statement(span: Span, *names: n.Alias) -> n.Import:
    return n.Import(span, names)


def import_from(span: Span, module: str, names: Aliases) -> n.ImportFrom:
    return n.ImportFrom(span, module, names, 0)


def import_relative(span: Span, level: int, module: str, names: Aliases) -> n.ImportFrom:
    return n.ImportFrom(span, module, names, level)


def import_package(span: Span, level: int, names: Aliases) -> n.ImportFrom:
    return n.ImportFrom(span, None, names, level)


def alias(span: Span, text: str, asname: str | None) -> n.Alias:
    return n.Alias(span, identifier(text), identifier(asname) if asname else None)


dotted_alias = alias


def dotted_name(span: Span, *parts: str) -> str:
    return ".".join(parts)


def dots(span: Span, *parts: str) -> int:
    return len("".join(parts))


def imported(span: Span, *names: n.Alias) -> Aliases:
    return names


def import_star(span: Span) -> Aliases:
    return (n.Alias(span, "*"),)


# ---- compound statements -------------------------------------------------------------------


class Branch(NamedTuple):
    """One `elif`."""

    span: Span
    test: n.Expression
    body: Block


def if_statement(
    span: Span,
    test: n.Expression,
    body: Block,
    elifs: tuple[Branch, ...],
    orelse: Block | None,
) -> n.If:
    otherwise = orelse or ()
    for branch in reversed(elifs):
        otherwise = (n.If(branch.span.to(span), branch.test, branch.body, otherwise),)
    return n.If(span, test, body, otherwise)


def elifs(span: Span, *branches: Branch) -> tuple[Branch, ...]:
    return branches


def elif_block(span: Span, test: n.Expression, body: Block) -> Branch:
    return Branch(span, test, body)


def while_statement(span: Span, test: n.Expression, body: Block, orelse: Block | None) -> n.While:
    return n.While(span, test, body, orelse or ())


def for_statement(
    span: Span, target: n.Expression, iterable: n.Expression, body: Block, orelse: Block | None
) -> n.For:
    return n.For(span, as_target(target), iterable, body, orelse or ())


def with_statement(span: Span, items: tuple[n.WithItem, ...], body: Block) -> n.With:
    return n.With(span, items, body)


def with_items(span: Span, *items: n.WithItem) -> tuple[n.WithItem, ...]:
    return items


def with_item(span: Span, context: n.Expression, target: n.Expression | None) -> n.WithItem:
    return n.WithItem(span, context, as_target(target) if target else None)


def async_statement(
    span: Span, statement: n.FunctionDef | n.For | n.With
) -> n.FunctionDef | n.For | n.With:
    return replace(statement, span=span, is_async=True)


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


def try_finally(span: Span, body: Block, final: Block) -> n.Try:
    return n.Try(span, body, (), (), final)


def handlers(span: Span, *clauses: n.ExceptHandler) -> Handlers:
    return clauses


star_handlers = handlers


def handler(span: Span, type: n.Expression, name: str | None, body: Block) -> n.ExceptHandler:
    return n.ExceptHandler(span, type, identifier(name) if name else None, body)


def bare_handler(span: Span, body: Block) -> n.ExceptHandler:
    return n.ExceptHandler(span, None, None, body)


# ---- definitions ---------------------------------------------------------------------------


def decorators(span: Span, *expressions: n.Expression) -> tuple[n.Expression, ...]:
    return expressions


def decorated(
    span: Span, decorators: tuple[n.Expression, ...], definition: n.FunctionDef | n.ClassDef
) -> n.FunctionDef | n.ClassDef:
    return replace(definition, decorators=decorators)


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
        raise refusal(
            "argument-order",
            "a generator expression as a base class needs parentheses of its own",
            arguments.span,
            help="name the base classes",
        )
    bases, keywords = (arguments.args, arguments.keywords) if arguments else ((), ())
    return n.ClassDef(span, name.id, name.span, bases, keywords, body, type_params=params or ())


def type_params(span: Span, *params: n.TypeParam) -> tuple[n.TypeParam, ...]:
    return params


def type_var(span: Span, name: str, bound: n.Expression | None) -> n.TypeVar:
    return n.TypeVar(span, identifier(name), bound)


def type_var_tuple(span: Span, name: str) -> n.TypeVarTuple:
    return n.TypeVarTuple(span, identifier(name))


def param_spec(span: Span, name: str) -> n.ParamSpec:
    return n.ParamSpec(span, identifier(name))
