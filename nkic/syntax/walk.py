"""Going through a syntax tree without recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from nkic.syntax.base import Node

_NEVER_NODES = frozenset({"span", "name_span"})


@cache
def _child_fields(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.name not in _NEVER_NODES)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below `node`, in the order of its fields."""
    kind: Any = type(node)  # mypy takes a class of unhashable objects for unhashable itself
    for name in _child_fields(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, Node):
                    yield item


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents before children, first child first."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        yield at
        waiting.extend(reversed(list(children(at))))
