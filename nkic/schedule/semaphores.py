"""Waits and signals for an order of issue: only those that nothing else implies.

What is known to be complete is kept as a clock: for each stream, how many of its items are
known complete. Rules, which the runner obeys:
- a stream starts its items in order, and they complete in order;
- on a compute engine an item that starts has the results of all items before it (the engine
  interlocks); a DMA queue starts a transfer while earlier ones are still under way;
- an item that has waited for a signal knows all that the signalling item knew, and that item
  and all before it in its stream.
One semaphore serves one pair of streams, signaller and waiter; each wait takes one signal. A pair
has further ones for what a turn of a device loop waits for of the turn before (`carried`), by how
deep the loop is: it is given its signals once before the loop, for the first turn, and the last
ones are taken after it.
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

_Left = list[tuple[int, int]]  # lines, and semaphores that they take after a loop
_Found = tuple[int, int, Clock]  # an item: its line, its number there, and what it knew


@dataclass
class _Line:
    """A stream under construction: its items, and what its next item will know.

    `known` is never changed, since items share it. What it says of the line itself counts for a
    DMA queue alone: an item of a compute engine finds all of those before it complete.
    """

    index: int
    id: StreamId
    known: Clock  # complete when the next item starts
    items: list[Instruction | None] = field(default_factory=list)
    waits: dict[int, list[int]] = field(default_factory=dict)  # semaphores, by item
    signals: dict[int, list[int]] = field(default_factory=dict)
    brackets: list[tuple[int, int, Loop]] = field(default_factory=list)  # loops, inner first

    def wait(self, position: int, semaphore: int) -> None:
        """The item of that number, counted from 1, waits."""
        self.waits.setdefault(position - 1, []).append(semaphore)

    def signal(self, position: int, semaphore: int) -> None:
        """The item of that number signals."""
        self.signals.setdefault(position - 1, []).append(semaphore)

    def nested(self) -> tuple[StreamItem, ...]:
        """The items, each loop's folded into one."""
        items: list[StreamItem | None] = [*self._slots()]
        for low, high, loop in self.brackets:
            body = tuple(item for item in items[low:high] if item is not None)
            items[low:high] = [StreamLoop(loop, body), *[None] * (high - low - 1)]
        return tuple(item for item in items if item is not None)

    def _slots(self) -> Iterator[Slot]:
        """The finished items, without loops. Equal waits are one object, and equal signals."""
        waits, signals = lru_cache(_waits), lru_cache(tuple[int, ...])
        of_item = {at: waits(tuple(own)) for at, own in self.waits.items()}.get
        by_item = {at: signals(tuple(own)) for at, own in self.signals.items()}.get
        new = tuple.__new__
        for at, one in enumerate(self.items):
            yield new(Slot, (one, of_item(at, ()), by_item(at, ())))


def _waits(semaphores: tuple[int, ...]) -> tuple[Wait, ...]:
    return tuple([Wait(s, count) for s, count in Counter(semaphores).items()])


class Wiring:
    """Builds the streams of one core, stretch by stretch."""

    def __init__(
        self, streams: Sequence[StreamId], graph: DependenceGraph, most: int, overlaps: bool = True
    ) -> None:
        self.graph = graph
        self.most = most  # semaphores
        self.overlaps = overlaps  # turns of device loops may
        self.complete: Clock = [0] * len(streams)  # what all know from the last common barrier
        self.lines = {
            stream: _Line(index, stream, self.complete) for index, stream in enumerate(streams)
        }
        self.order = list(self.lines.values())
        self.in_order = [stream.engine is not Engine.DMA for stream in streams]
        self.where: dict[int, _Found] = {}  # by instruction
        self.semaphores: dict[tuple[int, int, int], int] = {}  # by pair, and depth if carried
        self.depth = 0  # loops that are open
        self.waited: dict[int, list[At]] | None = None  # by instruction, in loops that overlap

    def add(self, placed: Placed) -> None:
        """Appends an instruction to its stream with the waits that it needs."""
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
        """The latest item to wait for in each stream, for what is not known complete."""
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
        """The item of that number in `line` waits for the one that was found."""
        index, its, _ = found
        semaphore = self._semaphore(index, line.index)
        self.order[index].signal(its, semaphore)
        line.wait(position, semaphore)

    def _semaphore(self, signaller: int, waiter: int, depth: int = 0) -> int:
        """Of a pair; for what loops carry, of loops that are so deep."""
        pair = (signaller, waiter, depth)
        return self.semaphores.setdefault(pair, len(self.semaphores))

    def streams(self) -> tuple[Stream, ...]:
        """The finished streams, without those that do nothing."""
        return tuple(Stream(line.id, line.nested()) for line in self.order if line.items)

    def loop(self, loop: Loop, body: Callable[[], None]) -> None:
        """Wires a device loop: barriers before and after, and at the end of each iteration where
        iterations may not overlap.

        Where a register decides how often it runs, every such iteration begins with one too: all
        streams have decided before any goes on to change the register.
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
        """Wires a loop whose turns come one after the other."""
        starts = [len(line.items) for line in self.order]
        if any(isinstance(v, Register) for v in (loop.start, loop.stop, loop.condition)):
            self.barrier(self._deciding(loop))
        body()
        self.barrier(self._since(starts))
        self._bracket(loop, starts)
        return []

    def _deciding(self, loop: Loop) -> list[_Line]:
        """The lines that will have the loop: all of them, for its barriers, where it holds one."""
        if any(isinstance(item, Loop) for item in loop.body):
            return self.order
        engines = {one.engine for one in instructions(loop.body)}
        return [line for line in self.order if line.id.engine in engines]

    def _since(self, starts: Sequence[int]) -> list[_Line]:
        """The lines that have got items since they were so long."""
        pairs = zip(self.order, starts, strict=True)
        return [line for line, start in pairs if len(line.items) > start]

    def _bracket(self, loop: Loop, starts: Sequence[int]) -> None:
        for line in self._since(starts):
            line.brackets.append((starts[line.index], len(line.items), loop))

    def _overlapping(self, loop: Loop, body: Callable[[], None]) -> _Left:
        """Wires a loop whose turns wait for no more of each other than they need. The items before
        it signal for the first turn; what the last one signalled is left.
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
        """Wires the body; what a turn waits for of the turn before."""
        waited: dict[int, list[At]] = {}
        before, self.waited = len(self.where), waited
        body()
        self.waited = None
        inside = list(self.where.items())[before:]
        where = {number: At(*found) for number, found in inside}
        return carried(self.graph, where, ends(loop), waited, self.in_order, self.complete)

    def barrier(self, lines: Sequence[_Line]) -> None:
        """Makes every one of `lines` wait until all that they hold is complete."""
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
    """What is known after a wait for an item."""
    index, position, clock = found
    both = [a if a > b else b for a, b in zip(known, clock, strict=True)]
    if both[index] < position:
        both[index] = position
    return both


def _without_implied(found: list[_Found]) -> list[_Found]:
    """Drops a wait that another of the waits brings along."""
    if len(found) < 2:
        return found
    return [
        (index, position, clock)
        for index, position, clock in found
        if not any(other != index and its[index] >= position for other, _, its in found)
    ]
