"""Loop-carried waits between consecutive iterations of a device loop without a barrier.

Completion is tracked with vector clocks, as in `semaphores`, but over the previous iteration: a
compute engine has completed its own items of that iteration, and an item that waits for a signal
inherits the clock of the signalling item. An inner loop is surrounded by barriers, so only the
items before the first inner loop wait, and only for items after the last inner loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import registers_of
from nkic.ir.program import Item, Loop, instructions
from nkic.machine.facts import Register

Clock = list[int]


class Event(NamedTuple):
    """An instruction's stream, its position in the stream, and its vector clock at completion."""

    stream: int
    position: int
    clock: Clock


class CarriedWait(NamedTuple):
    """A loop-carried wait: `waiter`, in the next iteration, waits for `source`."""

    source: Event
    waiter: Event


def overlaps(loop: Loop) -> bool:
    """Return whether iterations of `loop` may overlap.

    They may if the body holds no rendezvous and does not change the registers that bound the loop.
    """
    if loop.condition is not None:
        return False
    bounds = {v.number for v in (loop.start, loop.stop) if isinstance(v, Register)}
    return not any(
        instruction.row.is_rendezvous
        or any(access.writes and number in bounds for number, access in registers_of(instruction))
        for instruction in instructions(loop.body)
    )


class Boundary(NamedTuple):
    """The numbers of a body's instructions before its first inner loop and after its last one.

    Without an inner loop, both sets hold all instructions.
    """

    first: frozenset[int]
    last: frozenset[int]


def boundary_of(loop: Loop) -> Boundary:
    """Return the instructions that can wait for, and be waited for by, an adjacent iteration."""
    first, last = _until_loop(loop.body), _until_loop(reversed(loop.body))
    return Boundary(frozenset(first), frozenset(last))


def _until_loop(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Loop):
            return
        yield item.number


def carried_waits(
    graph: DependenceGraph,
    events: Mapping[int, Event],
    boundary: Boundary,
    local_waits: Mapping[int, Sequence[Event]],
    in_order: Sequence[bool],
    complete: Clock,
) -> list[CarriedWait]:
    """Return the waits that an iteration needs on the previous one, besides its own.

    `events` maps the body's instructions to their events, in order of issue. `boundary` holds those
    that may wait and those that may be waited for, and `local_waits` the waits of each instruction
    within its own iteration. `in_order` tells, per stream, whether an item sees the results of all
    earlier items. `complete` is the clock that all streams share after the last barrier of the
    previous iteration.
    """
    sources = {number: event for number, event in events.items() if number in boundary.last}
    walk = _Walk(graph, sources, [list(complete) for _ in in_order])
    for event in events.values():
        if in_order[event.stream]:
            clock = walk.clocks[event.stream]
            clock[event.stream] = max(clock[event.stream], event.position)
    return [
        wait
        for number, event in events.items()
        if number in boundary.first
        for wait in walk.waits(number, event, local_waits.get(number, ()))
    ]


class _Walk:
    def __init__(
        self, graph: DependenceGraph, sources: Mapping[int, Event], clocks: Sequence[Clock]
    ) -> None:
        self.graph = graph
        self.sources = sources
        self.clocks = clocks  # per stream: the clock of its next item, over the previous iteration
        # the clocks of past items, by stream and position
        self.past_clocks: dict[tuple[int, int], Clock] = {}

    def waits(
        self, number: int, event: Event, local_waits: Sequence[Event]
    ) -> Iterator[CarriedWait]:
        """Yield the waits that the instruction `number`, whose event is `event`, still needs."""
        clock = self.clocks[event.stream]
        for source in local_waits:
            join(clock, self.past_clocks.get((source.stream, source.position), clock))
        for source in self._needed(number):
            if clock[source.stream] < source.position:
                yield CarriedWait(source, event)
                join(clock, source.clock)
                clock[source.stream] = source.position
        self.past_clocks[event.stream, event.position] = list(clock)

    def _needed(self, number: int) -> list[Event]:
        """Return the latest instruction of the previous iteration to wait for, per stream."""
        latest: dict[int, Event] = {}
        for edge in self.graph.sources(number):
            source = self.sources.get(edge.source) if edge.distance else None
            if source is not None:
                latest[source.stream] = max(
                    latest.get(source.stream, source), source, key=lambda event: event.position
                )
        return list(latest.values())


def join(clock: Clock, other: Clock) -> None:
    """Merge `other` into `clock` (element-wise maximum)."""
    for index, value in enumerate(other):
        if value > clock[index]:
            clock[index] = value
