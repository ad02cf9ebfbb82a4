"""Renumber a changed program, so that numbers increase in the body and match the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.program import Body, Instruction, Item, Loop, instructions


def renumbered(reordered: Body, graph: DependenceGraph) -> tuple[Body, DependenceGraph]:
    """Return `reordered` and `graph` with the body's numbers reassigned in the body's new order."""
    old = [instruction.number for instruction in instructions(reordered)]
    numbers = dict(zip(old, sorted(old), strict=True))
    return tuple(_numbered(reordered, numbers)), _graph(graph, numbers)


def _numbered(body: Body, numbers: Mapping[int, int]) -> Iterator[Item]:
    for item in body:
        if isinstance(item, Loop):
            yield replace(item, body=tuple(_numbered(item.body, numbers)))
        else:
            after = tuple(numbers[number] for number in item.after)
            yield item._replace(number=numbers[item.number], after=after)


def _graph(graph: DependenceGraph, numbers: Mapping[int, int]) -> DependenceGraph:
    def edges(old_edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        return tuple(edge._replace(source=numbers[edge.source]) for edge in old_edges)

    def ends(touches: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        return {t: tuple(sorted(numbers[number] for number in old)) for t, old in touches.items()}

    return DependenceGraph(
        {numbers[number]: edges(old_edges) for number, old_edges in sorted(graph.edges.items())},
        ends(graph.first_touches),
        ends(graph.last_touches),
    )


def in_order(body: Body) -> Body:
    """Return the body with increasing numbers: parts of a split instruction share one before."""
    order, new = count(), dict[int, list[int]]()

    def numbered(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=numbered(i.body)) if isinstance(i, Loop) else with_number(i)
                for i in body
            ]
        )

    def with_number(item: Instruction) -> Instruction:
        new.setdefault(item.number, []).append(number := next(order))
        return item._replace(number=number)

    def linked(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=linked(i.body))
                if isinstance(i, Loop)
                else i._replace(after=tuple(n for old in i.after for n in new[old]))
                for i in body
            ]
        )

    return linked(numbered(body))
