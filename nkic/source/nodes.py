"""The syntax tree.

There is one frozen class per construct, named as in Python's own `ast`. Every node starts with its
`span`, exact to the character. Differences from `ast`, and the reasons:

* Operators are their text ("+", "not in", "and"), so that messages can print them.
* There is no `ctx`: the position of a Name tells whether it is read or written.
* `async` is a flag. Names of definitions have a span of their own (`name_span`).
* Nodes compare and hash by identity, so later stages can key tables by node.

Chains lean on one side and may be as deep as the file is long: `a + b + c …`, `a.b.c …`, `f()()…`
on their left, `elif` on `orelse`. Traverse them with `walk` or a loop, not recursively.
All other nesting is bounded, see `nkic.source.parser`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from types import EllipsisType
from typing import Any, dataclass_transform
from typing import TypeVar as typing_TypeVar

from nkic.base.source import Span

# ---- The base class of the syntax tree's nodes --------------------------------------------------

_Class = typing_TypeVar("_Class")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_Class]) -> type[_Class]:
    """Make a frozen dataclass with slots that compares by identity.

    Its repr is the short one of Node, which costs no start-up time and no stack in deep trees.
    """
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


@node
class Node:
    """The base class of all nodes, with the node's place in the file."""

    span: Span

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.span}>"


# ---- Expressions, and the parts that only occur inside them -------------------------------------

Literal: typing.TypeAlias = str | bytes | int | float | complex | bool | EllipsisType | None


@node
class Constant(Node):
    """A literal, None, True, False or `...`. Adjacent strings are one constant."""

    value: Literal


@node
class Name(Node):
    """An identifier, in Unicode normal form KC."""

    id: str


@node
class Attribute(Node):
    """`value.attr`."""

    value: Expression
    attr: str


@node
class Subscript(Node):
    """`value[slice]`; several subscripts are a Tuple."""

    value: Expression
    slice: Expression


@node
class Slice(Node):
    """`lower:upper:step`."""

    lower: Expression | None = None
    upper: Expression | None = None
    step: Expression | None = None


@node
class Keyword(Node):
    """`name=value` in a call; the name is None for `**value`."""

    arg: str | None
    value: Expression


@node
class Call(Node):
    """`func(args, keywords)`."""

    func: Expression
    args: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]


@node
class Starred(Node):
    """`*value`."""

    value: Expression


@node
class UnaryOp(Node):
    """`-a`, `+a`, `~a`, `not a`."""

    op: str
    operand: Expression


@node
class BinOp(Node):
    """`left op right`."""

    left: Expression
    op: str
    right: Expression


@node
class BoolOp(Node):
    """`a and b and c`: one node for the whole chain."""

    op: str
    values: tuple[Expression, ...]


@node
class Compare(Node):
    """`left op0 comparators0 op1 comparators1 …`."""

    left: Expression
    ops: tuple[str, ...]
    comparators: tuple[Expression, ...]


@node
class NamedExpr(Node):
    """`target := value`."""

    target: Name
    value: Expression


@node
class IfExp(Node):
    """`body if test else orelse`."""

    test: Expression
    body: Expression
    orelse: Expression


@node
class Lambda(Node):
    """`lambda args: body`."""

    args: Arguments
    body: Expression


@node
class Await(Node):
    """`await value`."""

    value: Expression


@node
class Yield(Node):
    """`yield` with or without a value."""

    value: Expression | None = None


@node
class YieldFrom(Node):
    """`yield from value`."""

    value: Expression


@node
class Tuple(Node):
    """`a, b` or `(a, b)`; the span covers the parentheses if there are any."""

    elts: tuple[Expression, ...]


@node
class List(Node):
    """`[a, b]`."""

    elts: tuple[Expression, ...]


@node
class Set(Node):
    """`{a, b}`."""

    elts: tuple[Expression, ...]


@node
class Dict(Node):
    """`{key: value}`; a key is None for `**value`."""

    keys: tuple[Expression | None, ...]
    values: tuple[Expression, ...]


@node
class Comprehension(Node):
    """One `for target in iter if ifs` of a comprehension."""

    target: Expression
    iter: Expression
    ifs: tuple[Expression, ...]
    is_async: bool = False


@node
class ListComp(Node):
    """`[elt for …]`."""

    elt: Expression
    generators: tuple[Comprehension, ...]


@node
class SetComp(Node):
    """`{elt for …}`."""

    elt: Expression
    generators: tuple[Comprehension, ...]


@node
class DictComp(Node):
    """`{key: value for …}`."""

    key: Expression
    value: Expression
    generators: tuple[Comprehension, ...]


@node
class GeneratorExp(Node):
    """`(elt for …)`; the span covers the parentheses, also those of a call."""

    elt: Expression
    generators: tuple[Comprehension, ...]


@node
class FormattedValue(Node):
    """`{value!conversion:format_spec}` in an f-string; conversion is "", "s", "r" or "a"."""

    value: Expression
    conversion: str = ""
    format_spec: JoinedStr | None = None


@node
class JoinedStr(Node):
    """An f-string, with the strings next to it: constants and formatted values in turn."""

    values: tuple[Constant | FormattedValue, ...]


@node
class Arg(Node):
    """One parameter. The span covers the name and its annotation, not the default."""

    name: str
    annotation: Expression | None = None


@node
class Arguments(Node):
    """The parameters of a function or lambda.

    `defaults` belong to the last of `posonlyargs + args`; `kw_defaults` has one entry per
    keyword-only parameter, None where there is no default.
    """

    posonlyargs: tuple[Arg, ...] = ()
    args: tuple[Arg, ...] = ()
    vararg: Arg | None = None
    kwonlyargs: tuple[Arg, ...] = ()
    kw_defaults: tuple[Expression | None, ...] = ()
    kwarg: Arg | None = None
    defaults: tuple[Expression, ...] = ()


Expression: typing.TypeAlias = (
    Constant
    | Name
    | Attribute
    | Subscript
    | Slice
    | Call
    | Starred
    | UnaryOp
    | BinOp
    | BoolOp
    | Compare
    | NamedExpr
    | IfExp
    | Lambda
    | Await
    | Yield
    | YieldFrom
    | Tuple
    | List
    | Set
    | Dict
    | ListComp
    | SetComp
    | DictComp
    | GeneratorExp
    | FormattedValue
    | JoinedStr
)


# ---- The patterns of `match` statements ---------------------------------------------------------


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


# ---- Statements, and the parts that only occur inside them --------------------------------------


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


# ---- Traversal of a syntax tree without recursion -----------------------------------------------

# The types of fields without nodes, as spelt in the classes' annotations.
_PLAIN = frozenset(
    {"Span", "Literal", "str", "str | None", "bool", "bool | None", "int", "tuple[str, ...]"}
)


@cache
def _child_fields(cls: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Return the fields that hold nodes, and whether each holds several."""
    typed = [(f.name, str(f.type)) for f in fields(cls)]
    return tuple((name, kind.startswith("tuple[")) for name, kind in typed if kind not in _PLAIN)


def children(node: Node) -> list[Node]:
    """Return the nodes directly below `node`, in the order of its fields."""
    nodes: list[Node] = []
    kind: Any = type(node)  # mypy considers a class of unhashable objects unhashable itself
    for name, several in _child_fields(kind):
        value = getattr(node, name)
        if value is None:
            continue
        if several:
            nodes += value if None not in value else [child for child in value if child is not None]
        else:
            nodes.append(value)
    return nodes


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it in pre-order."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        yield at
        waiting += reversed(children(at))
