"""What a turn of a device loop waits for of the turn before, where no barrier stands between them.

Known is kept as in `semaphores`, by stream, but of the turn before: a compute engine has finished
its own items of it, and an item that waits for a signal knows what the signalling item knew. A loop
inside has barriers around it: what comes before the first one has to wait for what comes after the
last one, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import registers_of
from nkic.ir.program import Item, Loop, instructions
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
    """Turns of `loop` may overlap: it holds nothing that all cores run together, and no turn
    changes what decides how often it runs.
    """
    if loop.condition is not None:
        return False
    bounds = {v.number for v in (loop.start, loop.stop) if isinstance(v, Register)}
    return not any(
        one.row.is_rendezvous
        or any(access.writes and number in bounds for number, access in registers_of(one))
        for one in instructions(loop.body)
    )


class Ends(NamedTuple):
    """The instructions of a body, by number, that stand before the first loop in it, and those
    after the last one. Without a loop inside both are all of them.
    """

    first: frozenset[int]
    last: frozenset[int]


def ends(loop: Loop) -> Ends:
    """Where turns of `loop` meet."""
    first, last = _until_loop(loop.body), _until_loop(reversed(loop.body))
    return Ends(frozenset(first), frozenset(last))


def _until_loop(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Loop):
            return
        yield item.number


def carried(
    graph: DependenceGraph,
    where: Mapping[int, At],
    met: Ends,
    waited: Mapping[int, Sequence[At]],
    in_order: Sequence[bool],
    complete: Clock,
) -> list[Wait]:
    """The waits that a turn needs beside its own. `where` has the body's instructions in order of
    issue, `met` those that wait and are waited for, `waited` what each waits for in its own turn;
    `in_order` tells of each stream that its items find the results of those before. `complete` is
    what every stream knows from the last barrier of the turn before.
    """
    sources = {number: at for number, at in where.items() if number in met.last}
    walk = _Walk(graph, sources, [list(complete) for _ in in_order])
    for at in where.values():
        if in_order[at.line]:
            known = walk.known[at.line]
            known[at.line] = max(known[at.line], at.position)
    return [
        wait
        for number, at in where.items()
        if number in met.first
        for wait in walk.waits(number, at, waited.get(number, ()))
    ]


class _Walk:
    def __init__(
        self, graph: DependenceGraph, sources: Mapping[int, At], known: Sequence[Clock]
    ) -> None:
        self.graph = graph
        self.sources = sources
        self.known = known  # by stream: what its next item finds complete of the turn before
        self.then: dict[tuple[int, int], Clock] = {}  # the same of items that are past

    def waits(self, number: int, at: At, waited: Sequence[At]) -> Iterator[Wait]:
        """What that instruction, which stands there, still has to wait for."""
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
            source = self.sources.get(edge.source) if edge.distance else None
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
