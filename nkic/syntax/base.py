"""The base class of the syntax tree's nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from nkic.base.source import Span

_Class = TypeVar("_Class")


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
