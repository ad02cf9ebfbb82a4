"""Traversal of a syntax tree without recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from nkic.syntax.base import Node

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
