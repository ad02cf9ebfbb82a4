"""What a turn of a device loop waits for of the turn before, where no barrier stands between them.

Known is kept as in `semaphores`, by stream, but of the turn before: a compute engine has finished
its own items of it, and an item that waits for a signal knows what the signalling item knew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import registers_of
from nkic.ir.program import Instruction, Loop
from nkic.machine.facts import Register

Clock = list[int]


class At(NamedTuple):
    """Where an instruction stands: its stream, its number there, and what is known complete when
    it is.
    """

    line: int
    position: int
    clock: Clock


class Wait(NamedTuple):
    """The item at `waiter` waits, in the turn after, for that at `source`."""

    source: At
    waiter: At


def overlaps(loop: Loop) -> bool:
    """Turns of `loop` may overlap: it holds no other loop and nothing that all cores run together,
    and no turn changes what decides how often it runs.
    """
    body = [one for one in loop.body if isinstance(one, Instruction)]
    if len(body) < len(loop.body) or loop.condition is not None:
        return False
    bounds = {v.number for v in (loop.start, loop.stop) if isinstance(v, Register)}
    return not any(
        one.row.is_rendezvous
        or any(access.writes and number in bounds for number, access in registers_of(one))
        for one in body
    )


def carried(
    graph: DependenceGraph,
    where: Mapping[int, At],
    waited: Mapping[int, Sequence[At]],
    in_order: Sequence[bool],
) -> list[Wait]:
    """The waits that a turn needs beside its own. `where` has the body's instructions in order of
    issue, `waited` what each of them waits for in its own turn; `in_order` tells of each stream
    that its items find the results of those before.
    """
    walk = _Walk(graph, where, [len(in_order) * [0] for _ in in_order])
    for at in where.values():
        if in_order[at.line]:
            walk.known[at.line][at.line] = at.position
    return [wait for number in where for wait in walk.waits(number, waited.get(number, ()))]


class _Walk:
    def __init__(
        self, graph: DependenceGraph, where: Mapping[int, At], known: Sequence[Clock]
    ) -> None:
        self.graph = graph
        self.where = where
        self.known = known  # by stream: what its next item finds complete of the turn before
        self.then: dict[tuple[int, int], Clock] = {}  # the same of items that are past

    def waits(self, number: int, waited: Sequence[At]) -> Iterator[Wait]:
        """What that instruction still has to wait for."""
        at = self.where[number]
        known = self.known[at.line]
        for source in waited:
            join(known, self.then.get((source.line, source.position), known))
        for source in self._needed(number):
            if known[source.line] < source.position:
                yield Wait(source, at)
                join(known, source.clock)
                known[source.line] = source.position
        self.then[at.line, at.position] = list(known)

    def _needed(self, number: int) -> list[At]:
        """The last instruction of the turn before to wait for, by stream."""
        latest: dict[int, At] = {}
        for edge in self.graph.sources(number):
            source = self.where.get(edge.source) if edge.distance else None
            if source is not None:
                latest[source.line] = max(
                    latest.get(source.line, source), source, key=lambda at: at.position
                )
        return list(latest.values())


def join(clock: Clock, other: Clock) -> None:
    """Makes `clock` know what `other` does, too."""
    for index, value in enumerate(other):
        if value > clock[index]:
            clock[index] = value
