"""The syntax tree as text, one node per line, to show what the parser read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from nkic.base.source import Span
from nkic.syntax.base import Node


def tree_text(root: Node) -> str:
    """Return every node below its parent, indented, with its span and its plain fields."""
    lines: list[str] = []
    waiting = [(0, "", root)]
    while waiting:  # a loop, because chains of operators nest as deep as the file is long
        depth, role, node = waiting.pop()
        lines.append("  " * depth + role + _line(node))
        below = [(depth + 1, name, child) for name, child in _children(node)]
        waiting.extend(reversed(below))
    return "\n".join(lines) + "\n"


def _line(node: Node) -> str:
    span = node.span
    plain = [f"{name}={value!r}" for name, value in _plain(node)]
    position = f"@{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return " ".join([type(node).__name__, *plain, position])


def _plain(node: Node) -> Iterator[tuple[str, object]]:
    for field in fields(node):
        value = getattr(node, field.name)
        if not isinstance(value, Node | Span) and not _nodes_in(value):
            yield field.name, value


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            yield f"{field.name}: ", value
        elif isinstance(value, tuple):
            yield from ((f"{field.name}: ", item) for item in value if isinstance(item, Node))


def _nodes_in(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Node | Span) for item in value)
