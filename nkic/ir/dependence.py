"""Dependence: which instruction must wait for which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Edge(NamedTuple):
    """The holder waits for instruction `source`.

    `kind` is raw, war, waw (memory), state (engine registers), user (depends_on), pin
    (no_reorder) or reuse (freed bytes taken over). `distance` 1 means: of the previous
    iteration of the innermost loop that holds both.
    """

    source: int
    kind: str
    distance: int = 0


@dataclass(frozen=True)
class DependenceGraph:
    """The edges of one core, by the number of the waiting instruction.

    `first_touches` and `last_touches` say, by tensor number, which instructions no access to the
    tensor comes before, and after: who must wait when the tensor takes over bytes, and for whom
    when it gives them up.
    """

    edges: Mapping[int, tuple[Edge, ...]]
    first_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    last_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def sources(self, number: int) -> tuple[Edge, ...]:
        """What instruction `number` waits for."""
        return self.edges.get(number, ())

    def plus(self, more: Mapping[int, tuple[Edge, ...]]) -> DependenceGraph:
        """This graph with further edges."""
        merged = dict(self.edges)
        for number, edges in more.items():
            own = merged.get(number)
            merged[number] = tuple(dict.fromkeys((*own, *edges))) if own else edges
        return replace(self, edges=merged)
