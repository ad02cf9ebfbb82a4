"""Expressions, and the parts that only occur inside them."""

from __future__ import annotations

import typing
from types import EllipsisType

from nkic.syntax.base import Node, node

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
