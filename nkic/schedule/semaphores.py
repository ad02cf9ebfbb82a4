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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Instruction, Loop, instructions
from nkic.ir.schedule import Slot, Stream, StreamId, StreamItem, StreamLoop, Wait
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.schedule.carried import (
    CarriedWait,
    Clock,
    Event,
    boundary_of,
    carried_waits,
    join,
    overlaps,
)
from nkic.schedule.placed import Order, Stretch

_Semaphore = tuple[int]  # a semaphore as a tuple of one, shared by all its uses
_Unconsumed = list[tuple[int, _Semaphore]]  # (stream, semaphore to consume after the loop)
_EventFields = tuple[int, int, Clock, int]  # the fields of an `Event`, and its stream's `via`
_NOTHING, _SEVERAL = -1, -2  # values of `via` that are not a stream
_NO_EVENT: _EventFields = (0, 0, [], _NOTHING)


@dataclass
class _StreamBuilder:
    """A stream under construction: its items, and the clock of its next item.

    `clock` is never mutated, since items share it. Its entry for the stream itself only matters for
    a DMA queue: an item of a compute engine sees all earlier items complete. `via` is the only
    stream whose signals the stream has waited for since the last barrier of all streams.
    """

    index: int
    id: StreamId
    clock: Clock  # when the next item starts
    via: int = _NOTHING
    items: list[Instruction | None] = field(default_factory=list)
    waits: list[tuple[int, ...]] = field(default_factory=list)  # semaphores, by item
    signals: list[tuple[int, ...]] = field(default_factory=list)
    # By signaller, those for waits that are not carried.
    semaphores: dict[int, _Semaphore] = field(default_factory=dict)
    brackets: list[tuple[int, int, Loop]] = field(default_factory=list)  # loops, innermost first

    def __post_init__(self) -> None:
        # The stream whose items all its items see complete: itself, except for a queue.
        self.own_index = -1 if self.id.engine is Engine.DMA else self.index

    def append(self, item: Instruction | None) -> None:
        """Append an item without waits and signals."""
        self.items.append(item)
        self.waits.append(())
        self.signals.append(())

    def wait(self, position: int, semaphore: _Semaphore) -> None:
        """Make the item at `position`, counted from 1, wait for `semaphore`."""
        self.waits[position - 1] += semaphore

    def signal(self, position: int, semaphore: _Semaphore) -> None:
        """Make the item at `position` signal `semaphore`."""
        self.signals[position - 1] += semaphore

    def learn(self, source: _EventFields) -> None:
        """Merge the clock of `source`, which the next item waits for.

        Clocks of a stream only grow. So if all knowledge came from the source's stream, the
        source's clock includes it; and if all that the source knows came from this stream, the
        stream knows it already. Other clocks are merged element by element.
        """
        index, position, source_clock, source_via = source
        if self.via in (_NOTHING, index):
            self.via, clock = index, source_clock.copy()
        elif source_via == self.index:
            self.via, clock = _SEVERAL, self.clock.copy()
            clock[source_via] = max(clock[source_via], source_clock[source_via])
        else:
            self.via, clock = _SEVERAL, _merged(self.clock, source_clock)
        clock[index] = max(clock[index], position)
        self.clock = clock

    def nested(self) -> tuple[StreamItem, ...]:
        """Return the items, with those of each loop folded into one."""
        slots = self._slots()
        if not self.brackets:
            return tuple(slots)
        items: list[StreamItem | None] = [*slots]
        for low, high, loop in self.brackets:
            body = tuple(item for item in items[low:high] if item is not None)
            items[low:high] = [StreamLoop(loop, body), *[None] * (high - low - 1)]
        return tuple(item for item in items if item is not None)

    def _slots(self) -> Iterator[Slot]:
        """Yield the finished items, without loops. Equal waits and equal signals are interned."""
        signals = dict[tuple[int, ...], tuple[int, ...]]()
        fields = zip(
            self.items,
            map(cache(_waits), self.waits),
            map(signals.setdefault, self.signals, self.signals),
            strict=True,
        )
        return map(partial(tuple.__new__, Slot), fields)


def _waits(semaphores: tuple[int, ...]) -> tuple[Wait, ...]:
    return tuple([Wait(s, count) for s, count in Counter(semaphores).items()])


class Wiring:
    """Builds the streams of one core, stretch by stretch."""

    def __init__(
        self,
        streams: Sequence[StreamId],
        graph: DependenceGraph,
        max_semaphores: int,
        overlaps: bool = True,
    ) -> None:
        self.graph = graph
        self.max_semaphores = max_semaphores
        self.overlaps = overlaps  # whether iterations of device loops may overlap
        self.complete: Clock = [0] * len(streams)  # the clock of the last common barrier
        self.builders = [
            _StreamBuilder(index, stream, self.complete) for index, stream in enumerate(streams)
        ]
        self.in_order = [stream.engine is not Engine.DMA for stream in streams]
        self.events: dict[int, _EventFields] = {}  # by instruction, in loops
        # By pair, and depth if carried.
        self.semaphores: dict[tuple[int, int, int], _Semaphore] = {}
        self.depth = 0  # of open loops
        self.local_waits: dict[int, list[Event]] | None = (
            None  # by instruction, in loops that overlap
        )

    def add(self, stretch: Stretch, order: Order) -> None:
        """Append instructions to their streams, with the waits that they need."""
        code, waits, streams = stretch.code, stretch.waits, order.streams
        builders, events = self.builders, [_NO_EVENT] * len(code)
        for index in order.indices:
            builder = builders[streams[index]]
            builder.append(code[index])
            position, sources = len(builder.items), waits[index]
            needed = self._needed([events[s] for s in sources], builder) if sources else ()
            for event in needed:
                self._connect(event[0], event[1], builder, position)
                builder.learn(event)
            events[index] = (builder.index, position, builder.clock, builder.via)
            if self.local_waits is not None:
                self.local_waits[code[index].number] = [Event(*event[:3]) for event in needed]
        if self.depth:
            self.events.update((code[index].number, events[index]) for index in order.indices)

    def _needed(
        self, events: Sequence[_EventFields], builder: _StreamBuilder
    ) -> Sequence[_EventFields]:
        """Return the latest item to wait for in each stream, unless it is known to be complete."""
        own, clock = builder.own_index, builder.clock
        needed = [event for event in events if event[0] != own and clock[event[0]] < event[1]]
        return _without_implied(_latest(needed)) if len(needed) > 1 else needed

    def _connect(
        self, index: int, source_position: int, builder: _StreamBuilder, position: int
    ) -> None:
        """Make the item at `position` in `builder` wait for that of stream `index`."""
        semaphore = builder.semaphores.get(index)
        if semaphore is None:
            semaphore = builder.semaphores[index] = self._semaphore(index, builder.index)
        self.builders[index].signal(source_position, semaphore)
        builder.wait(position, semaphore)

    def _semaphore(self, signaller: int, waiter: int, depth: int = 0) -> _Semaphore:
        """Return the semaphore of two streams, for loop-carried waits at loop depth `depth`."""
        pair = (signaller, waiter, depth)
        semaphore = self.semaphores.get(pair)
        if semaphore is None:
            semaphore = self.semaphores[pair] = (len(self.semaphores),)
        return semaphore

    def streams(self) -> tuple[Stream, ...]:
        """Return the finished streams, without empty ones. Ends the wiring."""
        return tuple(
            Stream(builder.id, builder.nested()) for builder in self.builders if builder.items
        )

    def loop(self, loop: Loop, body: Callable[[], None]) -> None:
        """Wire a device loop.

        There are barriers before and after it and, if iterations may not overlap, at the end of
        each iteration. If a register decides the trip count, each such iteration also begins with a
        barrier, so that all streams have read the register before any continues to change it.
        """
        self.barrier(self.builders)
        self.depth += 1
        wire = self._overlapping if self.overlaps and overlaps(loop) else self._separate
        unconsumed = wire(loop, body)
        self.depth -= 1
        after = [len(builder.items) for builder in self.builders]
        self.barrier(self.builders)
        for stream, semaphore in unconsumed:
            self.builders[stream].wait(after[stream] + 1, semaphore)

    def _separate(self, loop: Loop, body: Callable[[], None]) -> _Unconsumed:
        """Wire a loop whose iterations do not overlap."""
        starts = [len(builder.items) for builder in self.builders]
        if any(isinstance(v, Register) for v in (loop.start, loop.stop, loop.condition)):
            self.barrier(self._deciding(loop))
        body()
        self.barrier(self._since(starts))
        self._bracket(loop, starts)
        return []

    def _deciding(self, loop: Loop) -> list[_StreamBuilder]:
        """Return the streams that hold the loop: all of them for an outer loop (barriers)."""
        if any(isinstance(item, Loop) for item in loop.body):
            return self.builders
        engines = {instruction.engine for instruction in instructions(loop.body)}
        return [builder for builder in self.builders if builder.id.engine in engines]

    def _since(self, starts: Sequence[int]) -> list[_StreamBuilder]:
        """Return the streams that have gained items since their lengths were `starts`."""
        pairs = zip(self.builders, starts, strict=True)
        return [builder for builder, start in pairs if len(builder.items) > start]

    def _bracket(self, loop: Loop, starts: Sequence[int]) -> None:
        for builder in self._since(starts):
            builder.brackets.append((starts[builder.index], len(builder.items), loop))

    def _overlapping(self, loop: Loop, body: Callable[[], None]) -> _Unconsumed:
        """Wire a loop whose iterations overlap, with the waits that loop-carried dependences need.

        The items before the loop signal for the first iteration. Return the signals of the last
        iteration, which remain to be consumed.
        """
        starts = [len(builder.items) for builder in self.builders]
        carried = self._carried(loop, body)
        pairs = {(source.stream, waiter.stream, self.depth) for source, waiter in carried}
        if len(self.semaphores.keys() | pairs) > self.max_semaphores:
            self.barrier(self._since(starts))
            carried = []
        self._bracket(loop, starts)
        unconsumed: _Unconsumed = []
        for source, waiter in carried:
            semaphore = self._semaphore(source.stream, waiter.stream, self.depth)
            signaller, target = self.builders[source.stream], self.builders[waiter.stream]
            signaller.signal(source.position, semaphore)
            target.wait(waiter.position, semaphore)
            signaller.signal(starts[source.stream], semaphore)
            unconsumed.append((waiter.stream, semaphore))
        return unconsumed

    def _carried(self, loop: Loop, body: Callable[[], None]) -> list[CarriedWait]:
        """Wire the body, and return the loop-carried waits."""
        local_waits: dict[int, list[Event]] = {}
        before, self.local_waits = len(self.events), local_waits
        body()
        self.local_waits = None
        inside = list(self.events.items())[before:]
        events = {number: Event(*event[:3]) for number, event in inside}
        return carried_waits(
            self.graph, events, boundary_of(loop), local_waits, self.in_order, self.complete
        )

    def barrier(self, builders: Sequence[_StreamBuilder]) -> None:
        """Make each of `builders` wait until all items in all of them are complete."""
        if not builders or (len(builders) == 1 and builders[0].id.engine is not Engine.DMA):
            return
        complete: Clock = [0] * len(self.builders)
        for builder in builders:
            builder.append(None)
            join(complete, builder.clock)
        for builder in builders:
            complete[builder.index] = len(builder.items)
        if builders is self.builders:
            self.complete = complete
        arrivals = [(builder.index, len(builder.items)) for builder in builders]
        via = _NOTHING if builders is self.builders else _SEVERAL
        for builder in builders:
            builder.append(None)
            for index, position in arrivals:
                if index != builder.index or builder.id.engine is Engine.DMA:
                    self._connect(index, position, builder, len(builder.items))
            builder.clock, builder.via = complete, via


def _merged(clock: Clock, other: Clock) -> Clock:
    """Return the element-wise maximum."""
    return [a if a > b else b for a, b in zip(clock, other)]  # noqa: B905, which takes a third


def _latest(events: Iterable[_EventFields]) -> list[_EventFields]:
    """Return the last event of each stream."""
    latest: dict[int, _EventFields] = {}
    for event in events:
        known = latest.get(event[0])
        if known is None or known[1] < event[1]:
            latest[event[0]] = event
    return [*latest.values()]


def _without_implied(waits: list[_EventFields]) -> list[_EventFields]:
    """Drop the waits that another of the waits implies."""
    if len(waits) < 2:
        return waits
    return [
        wait
        for wait in waits
        if not any(other[0] != wait[0] and other[2][wait[0]] >= wait[1] for other in waits)
    ]
