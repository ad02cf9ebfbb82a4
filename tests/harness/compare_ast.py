"""Compares our syntax tree with Python's own, node by node, positions included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from nkic.base.source import Span
from nkic.syntax import nodes as n

# Before 3.12 Python knew no exact positions inside f-strings.
EXACT_FSTRINGS = sys.version_info >= (3, 12)

_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.Div: "/", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^",
    ast.BitAnd: "&", ast.FloorDiv: "//", ast.Invert: "~", ast.Not: "not", ast.UAdd: "+",
    ast.USub: "-", ast.And: "and", ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip
_NAMES = {
    "arguments": "Arguments", "arg": "Arg", "keyword": "Keyword", "alias": "Alias",
    "comprehension": "Comprehension", "withitem": "WithItem", "match_case": "MatchCase",
    "AsyncFunctionDef": "FunctionDef", "AsyncFor": "For", "AsyncWith": "With", "TryStar": "Try",
}  # fmt: skip
_FIELDS = {("arg", "arg"): "name"} | {
    (kind, "decorator_list"): "decorators"
    for kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef")
}
_IGNORED = {"ctx", "type_comment", "type_ignores", "kind", "simple", "default_value"}


class Columns:
    """Python's byte offsets as columns in code points."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return (offset if text.isascii() else len(text.encode()[:offset].decode())) + 1

    def span(self, node: Any) -> tuple[int, int, int, int]:
        return (
            node.lineno,
            self.column(node.lineno, node.col_offset),
            node.end_lineno,
            self.column(node.end_lineno, node.end_col_offset),
        )


def differences(ours: n.Module, text: str, theirs: ast.AST) -> Iterator[str]:
    """What differs, as sentences; nothing if the trees are equal."""
    columns = Columns(text)
    waiting: list[tuple[Any, Any, bool]] = [(ours, theirs, True)]
    while waiting:
        mine, other, exact = waiting.pop()
        if isinstance(other, ast.AST) and not isinstance(mine, str):
            yield from _node(mine, other, exact, columns, waiting)
        elif isinstance(other, list):
            if not isinstance(mine, tuple) or len(mine) != len(other):
                yield f"{mine!r} is not {[ast.dump(o) if isinstance(o, ast.AST) else o for o in other]}"[
                    :300
                ]
                continue
            waiting += [(a, b, exact) for a, b in zip(mine, other, strict=True)]
        elif _plain(other) != mine or type(_plain(other)) is not type(mine):
            yield f"{mine!r} is not {other!r}"


def _plain(value: Any) -> Any:
    if isinstance(value, ast.AST):
        return _OPERATORS[type(value)]
    return value


def _node(
    mine: Any, other: ast.AST, exact: bool, columns: Columns, waiting: list[tuple[Any, Any, bool]]
) -> Iterator[str]:
    name = type(other).__name__
    if type(mine).__name__ != _NAMES.get(name, name):
        yield f"{mine!r} is not {ast.dump(other)}"[:300]
        return
    if hasattr(other, "lineno") and exact and tuple(mine.span)[1:] != columns.span(other):
        yield f"{name} at {tuple(mine.span)[1:]} is not at {columns.span(other)}"
    if name.startswith("Async") and not mine.is_async or name == "TryStar" and not mine.is_star:
        yield f"{name} at {mine.span} has lost its flag"
    if isinstance(other, ast.AnnAssign) and mine.simple != bool(other.simple):
        yield f"{name} at {mine.span}: simple"
    inner = exact and (EXACT_FSTRINGS or name != "JoinedStr")
    for field, value in ast.iter_fields(other):
        if field in _IGNORED:
            continue
        own = getattr(mine, _FIELDS.get((name, field), field))
        if field == "conversion":
            own = ord(own) if own else -1
        if field == "is_async":
            value = bool(value)
        if field == "level":
            value = value or 0
        waiting.append((own, value, inner))


def spans_nest(module: n.Module) -> Span | None:
    """The first span that ends before it starts, if any."""
    from nkic.syntax.walk import walk

    return next((x.span for x in walk(module) if x.span[1:3] > x.span[3:5]), None)
