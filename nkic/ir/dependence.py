"""The dependence graph: which instructions each instruction waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Edge(NamedTuple):
    """A dependence on instruction `source`, held by the instruction that waits for it.

    `kind` is raw, war or waw (memory), state (engine registers), user (depends_on), pin
    (no_reorder) or reuse (of freed bytes). A `distance` of 1 means the previous iteration of the
    innermost loop that contains both instructions.
    """

    source: int
    kind: str
    distance: int = 0


@dataclass(frozen=True)
class DependenceGraph:
    """The edges of one core, keyed by the number of the waiting instruction.

    `first_touches` and `last_touches` map a tensor number to the instructions that no other access
    to the tensor precedes, and that none follows. They are the instructions that wait when the
    tensor reuses freed bytes, and the ones to wait for when its own bytes are reused. Several reads
    of what nothing has written are all first. A tensor in HBM that several patterns read and
    nothing writes is in neither.
    """

    edges: Mapping[int, tuple[Edge, ...]]
    first_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    last_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def sources(self, number: int) -> tuple[Edge, ...]:
        """Return the edges of instruction `number`: everything it waits for."""
        return self.edges.get(number, ())

    def plus(self, additional: Mapping[int, tuple[Edge, ...]]) -> DependenceGraph:
        """Return this graph with additional edges."""
        if not additional:
            return self
        merged = dict(self.edges)
        for number, edges in additional.items():
            existing = merged.get(number)
            merged[number] = tuple(dict.fromkeys((*existing, *edges))) if existing else edges
        return replace(self, edges=merged)
