"""Compare nkic's syntax tree with Python's own, node by node, positions included."""

import ast
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from nkic.source import nodes as n

# Before 3.12 Python has no exact positions inside f-strings.
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
_IGNORED = {"ctx", "type_comment", "type_ignores", "kind", "default_value"}


class Pair(NamedTuple):
    """Two values to compare; `exact` tells whether Python's positions are reliable."""

    mine: Any
    other: Any
    exact: bool


class Columns:
    """Convert Python's byte offsets to columns in code points."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def span(self, node: Any) -> tuple[int, int, int, int]:
        """Return the span of `node` in nkic's units."""
        start = self._column(node.lineno, node.col_offset)
        return (
            node.lineno,
            start,
            node.end_lineno,
            self._column(node.end_lineno, node.end_col_offset),
        )

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return (offset if text.isascii() else len(text.encode()[:offset].decode())) + 1


def differences(ours: n.Module, text: str, theirs: ast.AST) -> Iterator[str]:
    """Return the differences as sentences; none if the trees are equal."""
    columns = Columns(text)
    waiting = [Pair(ours, theirs, True)]
    while waiting:
        pair = waiting.pop()
        if isinstance(pair.other, list):
            yield from _list(pair, waiting)
        elif isinstance(pair.other, ast.AST) and type(pair.other) not in _OPERATORS:
            yield from _node(pair, columns, waiting)
        else:
            yield from _plain(pair)


def _plain(pair: Pair) -> Iterator[str]:
    other = _OPERATORS.get(type(pair.other), pair.other)
    if other != pair.mine or type(other) is not type(pair.mine):
        yield f"{pair.mine!r} is not {other!r}"


def _list(pair: Pair, waiting: list[Pair]) -> Iterator[str]:
    # Python 3.12 adds an empty text at the end of some formats.
    others = [item for item in pair.other if not _is_empty_text(item)]
    if not isinstance(pair.mine, tuple) or len(pair.mine) != len(others):
        yield f"{pair.mine!r} is not {[_dump(item) for item in others]}"
        return
    waiting += [Pair(a, b, pair.exact) for a, b in zip(pair.mine, others, strict=True)]


def _is_empty_text(item: Any) -> bool:
    is_empty = isinstance(item, ast.Constant) and item.value == ""
    return is_empty and item.col_offset == item.end_col_offset


def _dump(item: Any) -> str:
    return ast.dump(item)[:200] if isinstance(item, ast.AST) else repr(item)


def _node(pair: Pair, columns: Columns, waiting: list[Pair]) -> Iterator[str]:
    mine, other, exact = pair
    name = type(other).__name__
    if type(mine).__name__ != _NAMES.get(name, name):
        yield f"{mine!r} is not {_dump(other)}"
        return
    if hasattr(other, "lineno") and exact and mine.span[1:] != columns.span(other):
        yield f"{name} at {mine.span[1:]} is not at {columns.span(other)}"
    if name.startswith("Async") and not mine.is_async:
        yield f"{mine!r} is not async"
    if isinstance(mine, n.Try) and mine.is_star != (name == "TryStar"):
        yield f"{mine!r}: is_star"
    inner = exact and (EXACT_FSTRINGS or name != "JoinedStr")
    for field, value in ast.iter_fields(other):
        if field not in _IGNORED:
            own = getattr(mine, _FIELDS.get((name, field), field))
            waiting.append(Pair(own, _our_way(field, value), inner))


def _our_way(field: str, value: Any) -> Any:
    """Convert a field of Python's node to nkic's type."""
    if field == "conversion":
        return chr(value) if value > 0 else ""
    if field in ("is_async", "simple"):
        return bool(value)
    return value or 0 if field == "level" else value
