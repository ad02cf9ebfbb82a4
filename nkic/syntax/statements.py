"""Statements, and the parts that only occur inside them."""

from __future__ import annotations

import typing

from nkic.base.source import Span
from nkic.syntax.base import Node, node
from nkic.syntax.expressions import Arguments, Expression, Keyword, Name
from nkic.syntax.patterns import Pattern


@node
class Module(Node):
    """A whole file."""

    body: tuple[Statement, ...]


# ---- definitions --------------------------------------------------------------------------


@node
class TypeVar(Node):
    """`T` or `T: bound` in a type parameter list."""

    name: str
    bound: Expression | None = None


@node
class TypeVarTuple(Node):
    """`*Ts` in a type parameter list."""

    name: str


@node
class ParamSpec(Node):
    """`**P` in a type parameter list."""

    name: str


TypeParam: typing.TypeAlias = TypeVar | TypeVarTuple | ParamSpec


@node
class FunctionDef(Node):
    """`def`. As in `ast`, the span starts at `def` or `async`, not at the decorators."""

    name: str
    name_span: Span
    args: Arguments
    body: tuple[Statement, ...]
    decorators: tuple[Expression, ...] = ()
    returns: Expression | None = None
    type_params: tuple[TypeParam, ...] = ()
    is_async: bool = False


@node
class ClassDef(Node):
    """`class`. The span starts at `class`."""

    name: str
    name_span: Span
    bases: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]
    body: tuple[Statement, ...]
    decorators: tuple[Expression, ...] = ()
    type_params: tuple[TypeParam, ...] = ()


# ---- simple statements --------------------------------------------------------------------


@node
class Expr(Node):
    """An expression standing as a statement."""

    value: Expression


@node
class Assign(Node):
    """`a = b = value`: one or more targets."""

    targets: tuple[Expression, ...]
    value: Expression


@node
class AugAssign(Node):
    """`target op= value`; `op` is the text without the equals sign."""

    target: Expression
    op: str
    value: Expression


@node
class AnnAssign(Node):
    """`target: annotation = value`; `simple` if the target is a name without parentheses."""

    target: Expression
    annotation: Expression
    value: Expression | None
    simple: bool


@node
class TypeAlias(Node):
    """`type name[params] = value`."""

    name: Name
    type_params: tuple[TypeParam, ...]
    value: Expression


@node
class Return(Node):
    """`return` with or without a value."""

    value: Expression | None = None


@node
class Delete(Node):
    """`del`."""

    targets: tuple[Expression, ...]


@node
class Raise(Node):
    """`raise exc from cause`."""

    exc: Expression | None = None
    cause: Expression | None = None


@node
class Assert(Node):
    """`assert test, msg`."""

    test: Expression
    msg: Expression | None = None


@node
class Alias(Node):
    """One imported name, `name as asname`. The name is dotted in `import a.b`."""

    name: str
    asname: str | None = None


@node
class Import(Node):
    """`import a.b as c`."""

    names: tuple[Alias, ...]


@node
class ImportFrom(Node):
    """`from ..module import names`; `level` counts the dots."""

    module: str | None
    names: tuple[Alias, ...]
    level: int


@node
class Global(Node):
    """`global`."""

    names: tuple[str, ...]


@node
class Nonlocal(Node):
    """`nonlocal`."""

    names: tuple[str, ...]


@node
class Pass(Node):
    """`pass`."""


@node
class Break(Node):
    """`break`."""


@node
class Continue(Node):
    """`continue`."""


# ---- compound statements ------------------------------------------------------------------


@node
class If(Node):
    """`if`; an `elif` is an If alone in `orelse`."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@node
class While(Node):
    """`while`."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@node
class For(Node):
    """`for` and `async for`."""

    target: Expression
    iter: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    is_async: bool = False


@node
class WithItem(Node):
    """One `context_expr as optional_vars` of a with statement."""

    context_expr: Expression
    optional_vars: Expression | None = None


@node
class With(Node):
    """`with` and `async with`."""

    items: tuple[WithItem, ...]
    body: tuple[Statement, ...]
    is_async: bool = False


@node
class ExceptHandler(Node):
    """One `except type as name`."""

    type: Expression | None
    name: str | None
    body: tuple[Statement, ...]


@node
class Try(Node):
    """`try`; `is_star` if its handlers are `except*`."""

    body: tuple[Statement, ...]
    handlers: tuple[ExceptHandler, ...]
    orelse: tuple[Statement, ...]
    finalbody: tuple[Statement, ...]
    is_star: bool = False


@node
class MatchCase(Node):
    """One `case pattern if guard: body`."""

    pattern: Pattern
    guard: Expression | None
    body: tuple[Statement, ...]


@node
class Match(Node):
    """`match`."""

    subject: Expression
    cases: tuple[MatchCase, ...]


Statement: typing.TypeAlias = (
    FunctionDef
    | ClassDef
    | Expr
    | Assign
    | AugAssign
    | AnnAssign
    | TypeAlias
    | Return
    | Delete
    | Raise
    | Assert
    | Import
    | ImportFrom
    | Global
    | Nonlocal
    | Pass
    | Break
    | Continue
    | If
    | While
    | For
    | With
    | Try
    | Match
)
