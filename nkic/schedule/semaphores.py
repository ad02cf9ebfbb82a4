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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Instruction, Loop, instructions
from nkic.ir.schedule import Slot, Stream, StreamId, StreamItem, StreamLoop, Wait
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.schedule.carried import At, Clock, carried, ends, join, overlaps
from nkic.schedule.carried import Wait as Carried
from nkic.schedule.placed import Placed

_Left = list[tuple[int, int]]  # lines, and semaphores that they take after a loop


@dataclass
class _Line:
    """A stream under construction: its items, and what its next item will know."""

    index: int
    id: StreamId
    known: Clock  # complete when the next item starts
    done: Clock  # complete when the last item is
    items: list[_Draft] = field(default_factory=list)
    brackets: list[tuple[int, int, Loop]] = field(default_factory=list)  # loops, inner first

    def nested(self) -> tuple[StreamItem, ...]:
        """The items, each loop's folded into one."""
        known: dict[tuple[int, ...], tuple[Wait, ...]] = {}
        items: list[StreamItem | None] = [draft.slot(known) for draft in self.items]
        for low, high, loop in self.brackets:
            body = tuple(item for item in items[low:high] if item is not None)
            items[low:high] = [StreamLoop(loop, body), *[None] * (high - low - 1)]
        return tuple(item for item in items if item is not None)


class _Draft:
    __slots__ = ("instruction", "signals", "waits")

    def __init__(self, instruction: Instruction | None) -> None:
        self.instruction = instruction
        self.waits: list[int] = []
        self.signals: list[int] = []

    def slot(self, known: dict[tuple[int, ...], tuple[Wait, ...]]) -> Slot:
        """The finished item; `known` are the waits of others, by semaphores."""
        own = tuple(self.waits)
        waits = known.get(own)
        if waits is None:
            counts = Counter(own).items()
            waits = known[own] = tuple([Wait(s, count) for s, count in counts])
        return Slot(self.instruction, waits, tuple(self.signals))


class Wiring:
    """Builds the streams of one core, stretch by stretch."""

    def __init__(
        self, streams: Sequence[StreamId], graph: DependenceGraph, most: int, overlaps: bool = True
    ) -> None:
        self.graph = graph
        self.most = most  # semaphores
        self.overlaps = overlaps  # turns of device loops may
        count = len(streams)
        self.lines = {
            stream: _Line(index, stream, [0] * count, [0] * count)
            for index, stream in enumerate(streams)
        }
        self.order = list(self.lines.values())
        self.where: dict[int, tuple[_Line, int, Clock]] = {}  # by instruction
        self.semaphores: dict[tuple[int, int, int], int] = {}  # by pair, and depth if carried
        self.depth = 0  # loops that are open
        self.complete: Clock = [0] * count  # what every stream knows from the last common barrier
        self.waited: dict[int, list[At]] | None = None  # by instruction, in loops that overlap

    def add(self, placed: Placed) -> None:
        """Appends an instruction to its stream with the waits that it needs."""
        line, number = self.lines[placed.stream], placed.instruction.number
        draft = _Draft(placed.instruction)
        needed = self._needed(number, line) if number in self.graph.edges else ()
        for source_line, position, clock in needed:
            self._connect(source_line.items[position - 1], source_line, draft, line)
            join(line.known, clock)
        if self.waited is not None:
            self.waited[number] = [At(one.index, at, clock) for one, at, clock in needed]
        self._append(line, draft, bool(needed))
        self.where[number] = (line, len(line.items), line.done.copy())

    def _needed(self, number: int, line: _Line) -> list[tuple[_Line, int, Clock]]:
        """The latest item to wait for in each stream, for what is not known complete."""
        latest: dict[int, tuple[_Line, int, Clock]] = {}
        for edge in self.graph.sources(number):
            found = self.where.get(edge.source)
            if edge.distance or found is None:
                continue
            source, position, _ = found
            index = source.index
            if line.known[index] >= position:
                continue
            if index not in latest or latest[index][1] < position:
                latest[index] = found
        return self._without_implied(list(latest.values())) if latest else []

    def _without_implied(
        self, found: list[tuple[_Line, int, Clock]]
    ) -> list[tuple[_Line, int, Clock]]:
        """Drops a wait that another of the waits brings along."""
        if len(found) < 2:
            return found
        return [
            one
            for one in found
            if not any(other is not one and other[2][one[0].index] >= one[1] for other in found)
        ]

    def _connect(self, source: _Draft, from_line: _Line, draft: _Draft, line: _Line) -> None:
        semaphore = self._semaphore(from_line.index, line.index)
        source.signals.append(semaphore)
        draft.waits.append(semaphore)

    def _semaphore(self, signaller: int, waiter: int, depth: int = 0) -> int:
        """Of a pair; for what loops carry, of loops that are so deep."""
        pair = (signaller, waiter, depth)
        return self.semaphores.setdefault(pair, len(self.semaphores))

    def _append(self, line: _Line, draft: _Draft, has_learnt: bool = True) -> None:
        """`has_learnt`: more is known than before the item, but for its own stream."""
        line.items.append(draft)
        if has_learnt:
            join(line.done, line.known)
        line.done[line.index] = len(line.items)
        if line.id.engine is not Engine.DMA:
            line.known[line.index] = len(line.items)

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
            self.order[line].items[after[line]].waits.append(semaphore)

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
            signaller, taker = self.order[source.line].items, self.order[waiter.line].items
            signaller[source.position - 1].signals.append(semaphore)
            taker[waiter.position - 1].waits.append(semaphore)
            signaller[starts[source.line] - 1].signals.append(semaphore)
            left.append((waiter.line, semaphore))
        return left

    def _carried(self, loop: Loop, body: Callable[[], None]) -> list[Carried]:
        """Wires the body; what a turn waits for of the turn before."""
        waited: dict[int, list[At]] = {}
        before, self.waited = len(self.where), waited
        body()
        self.waited = None
        inside = list(self.where.items())[before:]
        where = {number: At(line.index, at, clock) for number, (line, at, clock) in inside}
        in_order = [line.id.engine is not Engine.DMA for line in self.order]
        return carried(self.graph, where, ends(loop), waited, in_order, self.complete)

    def barrier(self, lines: Sequence[_Line]) -> None:
        """Makes every one of `lines` wait until all that they hold is complete."""
        if not lines or (len(lines) == 1 and lines[0].id.engine is not Engine.DMA):
            return
        arrive = {line.index: _Draft(None) for line in lines}
        for line in lines:
            self._append(line, arrive[line.index])
        everything: Clock = [0] * len(self.order)
        for line in lines:
            join(everything, line.done)
        if lines is self.order:
            self.complete = everything
        for line in lines:
            leave = _Draft(None)
            for other in lines:
                if other is not line or line.id.engine is Engine.DMA:
                    self._connect(arrive[other.index], other, leave, line)
            join(line.known, everything)
            self._append(line, leave)
