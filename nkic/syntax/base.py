"""What every node of the syntax tree is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from nkic.base.source import Span

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass with slots that compares by identity.

    Its repr is the short one of Node: it costs no time at start-up, and no stack in deep trees.
    """
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


@node
class Node:
    """What all nodes have: where they stand in the file."""

    span: Span

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.span}>"
