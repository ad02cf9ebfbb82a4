"""Waits and signals for an order of issue: only those that nothing else implies.

Completion is tracked with vector clocks: for each stream, the number of its items that are known to
be complete. The rules, which the runner follows:
- a stream starts its items in order, and they complete in order;
- on a compute engine, an item sees the results of all earlier items (the engine interlocks); a DMA
  queue starts a transfer while earlier ones are in flight;
- an item that waits for a signal learns the clock of the signalling item, plus that item and all
  earlier items in its stream.

One semaphore serves one pair of streams, signaller and waiter; each wait consumes one signal. A
pair has further semaphores for loop-carried waits (`carried`), one per depth of loop: such a
semaphore is signalled once before the loop, for the first iteration, and the signals of the last
iteration are consumed after the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.program import Instruction, Loop, instructions
from nkic.ir.schedule import Slot, Stream, StreamId, StreamItem, StreamLoop, Wait
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.schedule.carried import At, Clock, carried, ends, join, overlaps
from nkic.schedule.carried import Wait as Carried
from nkic.schedule.placed import Placed

_Single = tuple[int]  # a semaphore as a tuple of one, shared by all its uses
_Left = list[tuple[int, _Single]]  # lines, and the semaphores that they consume after a loop
_Found = tuple[int, int, Clock]  # an item: its line, its position, and its clock


@dataclass
class _Line:
    """A stream under construction: its items, and the clock of its next item.

    `known` is never mutated, since items share it. Its entry for the line itself only matters for a
    DMA queue: an item of a compute engine sees all earlier items complete.
    """

    index: int
    id: StreamId
    known: Clock  # when the next item starts
    items: list[Instruction | None] = field(default_factory=list)
    waits: dict[int, tuple[int, ...]] = field(default_factory=dict)  # semaphores, by item
    signals: dict[int, tuple[int, ...]] = field(default_factory=dict)
    brackets: list[tuple[int, int, Loop]] = field(default_factory=list)  # loops, innermost first

    def wait(self, position: int, semaphore: _Single) -> None:
        """Make the item at `position`, counted from 1, wait for `semaphore`."""
        self.waits[position - 1] = self.waits.get(position - 1, ()) + semaphore

    def signal(self, position: int, semaphore: _Single) -> None:
        """Make the item at `position` signal `semaphore`."""
        self.signals[position - 1] = self.signals.get(position - 1, ()) + semaphore

    def nested(self) -> tuple[StreamItem, ...]:
        """Return the items, with those of each loop folded into one."""
        items: list[StreamItem | None] = [*self._slots()]
        for low, high, loop in self.brackets:
            body = tuple(item for item in items[low:high] if item is not None)
            items[low:high] = [StreamLoop(loop, body), *[None] * (high - low - 1)]
        return tuple(item for item in items if item is not None)

    def _slots(self) -> Iterator[Slot]:
        """Yield the finished items, without loops. Equal waits and equal signals are interned."""
        waits, signals = lru_cache(_waits), dict[tuple[int, ...], tuple[int, ...]]()
        of_item, by_item, new = self.waits.get, self.signals.get, tuple.__new__
        for at, one in enumerate(self.items):
            taken, given = of_item(at, ()), by_item(at, ())
            yield new(Slot, (one, waits(taken) if taken else (), signals.setdefault(given, given)))


def _waits(semaphores: tuple[int, ...]) -> tuple[Wait, ...]:
    return tuple([Wait(s, count) for s, count in Counter(semaphores).items()])


class Wiring:
    """Builds the streams of one core, stretch by stretch."""

    def __init__(
        self, streams: Sequence[StreamId], graph: DependenceGraph, most: int, overlaps: bool = True
    ) -> None:
        self.graph = graph
        self.most = most  # the limit on semaphores
        self.overlaps = overlaps  # whether iterations of device loops may overlap
        self.complete: Clock = [0] * len(streams)  # the clock of the last common barrier
        self.lines = {
            stream: _Line(index, stream, self.complete) for index, stream in enumerate(streams)
        }
        self.order = list(self.lines.values())
        self.in_order = [stream.engine is not Engine.DMA for stream in streams]
        self.where: dict[int, _Found] = {}  # by instruction
        self.semaphores: dict[tuple[int, int, int], _Single] = {}  # by pair, and depth if carried
        self.depth = 0  # of open loops
        self.waited: dict[int, list[At]] | None = None  # by instruction, in loops that overlap

    def add(self, placed: Placed) -> None:
        """Append an instruction to its stream, with the waits that it needs."""
        one, stream = placed
        line, number = self.lines[stream], one.number
        line.items.append(one)
        position = len(line.items)
        edges = self.graph.edges.get(number)
        needed = self._needed(edges, line) if edges else ()
        for found in needed:
            self._connect(found, line, position)
            line.known = _joined(line.known, found)
        self.where[number] = (line.index, position, line.known)
        if self.waited is not None:
            self.waited[number] = [At(*found) for found in needed]

    def _needed(self, edges: Sequence[Edge], line: _Line) -> Sequence[_Found]:
        """Return the latest item to wait for in each stream, unless it is known to be complete."""
        where, known = self.where, line.known
        own = line.index if self.in_order[line.index] else -1
        latest: dict[int, _Found] = {}
        for number, _, distance in edges:
            found = where.get(number)
            if distance or found is None:
                continue
            index, position, _ = found
            if index == own or known[index] >= position:
                continue
            if index not in latest or latest[index][1] < position:
                latest[index] = found
        return _without_implied(list(latest.values())) if latest else ()

    def _connect(self, found: _Found, line: _Line, position: int) -> None:
        """Make the item at `position` in `line` wait for the item `found`."""
        index, its, _ = found
        semaphore = self._semaphore(index, line.index)
        self.order[index].signal(its, semaphore)
        line.wait(position, semaphore)

    def _semaphore(self, signaller: int, waiter: int, depth: int = 0) -> _Single:
        """Return the semaphore of two streams, for loop-carried waits at loop depth `depth`."""
        pair = (signaller, waiter, depth)
        found = self.semaphores.get(pair)
        if found is None:
            found = self.semaphores[pair] = (len(self.semaphores),)
        return found

    def streams(self) -> tuple[Stream, ...]:
        """Return the finished streams, without empty ones. Ends the wiring."""
        self.where.clear()  # its clocks take more memory than the streams
        return tuple(Stream(line.id, line.nested()) for line in self.order if line.items)

    def loop(self, loop: Loop, body: Callable[[], None]) -> None:
        """Wire a device loop.

        There are barriers before and after it and, if iterations may not overlap, at the end of
        each iteration. If a register decides the trip count, each such iteration also begins with a
        barrier, so that all streams have read the register before any continues to change it.
        """
        self.barrier(self.order)
        self.depth += 1
        wire = self._overlapping if self.overlaps and overlaps(loop) else self._apart
        left = wire(loop, body)
        self.depth -= 1
        after = [len(line.items) for line in self.order]
        self.barrier(self.order)
        for line, semaphore in left:
            self.order[line].wait(after[line] + 1, semaphore)

    def _apart(self, loop: Loop, body: Callable[[], None]) -> _Left:
        """Wire a loop whose iterations do not overlap."""
        starts = [len(line.items) for line in self.order]
        if any(isinstance(v, Register) for v in (loop.start, loop.stop, loop.condition)):
            self.barrier(self._deciding(loop))
        body()
        self.barrier(self._since(starts))
        self._bracket(loop, starts)
        return []

    def _deciding(self, loop: Loop) -> list[_Line]:
        """Return the lines that hold the loop: all of them for an outer loop, with its barriers."""
        if any(isinstance(item, Loop) for item in loop.body):
            return self.order
        engines = {one.engine for one in instructions(loop.body)}
        return [line for line in self.order if line.id.engine in engines]

    def _since(self, starts: Sequence[int]) -> list[_Line]:
        """Return the lines that have gained items since their lengths were `starts`."""
        pairs = zip(self.order, starts, strict=True)
        return [line for line, start in pairs if len(line.items) > start]

    def _bracket(self, loop: Loop, starts: Sequence[int]) -> None:
        for line in self._since(starts):
            line.brackets.append((starts[line.index], len(line.items), loop))

    def _overlapping(self, loop: Loop, body: Callable[[], None]) -> _Left:
        """Wire a loop whose iterations overlap, with the waits that loop-carried dependences need.

        The items before the loop signal for the first iteration. Return the signals of the last
        iteration, which remain to be consumed.
        """
        starts = [len(line.items) for line in self.order]
        found = self._carried(loop, body)
        pairs = {(source.line, waiter.line, self.depth) for source, waiter in found}
        if len(self.semaphores.keys() | pairs) > self.most:
            self.barrier(self._since(starts))
            found = []
        self._bracket(loop, starts)
        left: _Left = []
        for source, waiter in found:
            semaphore = self._semaphore(source.line, waiter.line, self.depth)
            signaller, taker = self.order[source.line], self.order[waiter.line]
            signaller.signal(source.position, semaphore)
            taker.wait(waiter.position, semaphore)
            signaller.signal(starts[source.line], semaphore)
            left.append((waiter.line, semaphore))
        return left

    def _carried(self, loop: Loop, body: Callable[[], None]) -> list[Carried]:
        """Wire the body, and return the loop-carried waits."""
        waited: dict[int, list[At]] = {}
        before, self.waited = len(self.where), waited
        body()
        self.waited = None
        inside = list(self.where.items())[before:]
        where = {number: At(*found) for number, found in inside}
        return carried(self.graph, where, ends(loop), waited, self.in_order, self.complete)

    def barrier(self, lines: Sequence[_Line]) -> None:
        """Make each of `lines` wait until all items in all of them are complete."""
        if not lines or (len(lines) == 1 and lines[0].id.engine is not Engine.DMA):
            return
        everything: Clock = [0] * len(self.order)
        for line in lines:
            line.items.append(None)
            join(everything, line.known)
        for line in lines:
            everything[line.index] = len(line.items)
        if lines is self.order:
            self.complete = everything
        arrived = [(line.index, len(line.items), everything) for line in lines]
        for line in lines:
            line.items.append(None)
            for found in arrived:
                if found[0] != line.index or line.id.engine is Engine.DMA:
                    self._connect(found, line, len(line.items))
            line.known = everything


def _joined(known: Clock, found: _Found) -> Clock:
    """Return the clock after a wait for the item `found`."""
    index, position, clock = found
    both = [a if a > b else b for a, b in zip(known, clock, strict=True)]
    if both[index] < position:
        both[index] = position
    return both


def _without_implied(found: list[_Found]) -> list[_Found]:
    """Drop the waits that another of the waits implies."""
    if len(found) < 2:
        return found
    return [
        (index, position, clock)
        for index, position, clock in found
        if not any(other != index and its[index] >= position for other, _, its in found)
    ]
