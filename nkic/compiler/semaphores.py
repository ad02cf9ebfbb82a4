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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from nkic.machine.operands import Access, Register
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import Timing, activation_table, timing
from nkic.program.effects import registers_of
from nkic.program.program import (
    AccessPattern,
    DependenceGraph,
    Instruction,
    Item,
    Loop,
    Operand,
    Slot,
    Stream,
    StreamId,
    StreamItem,
    StreamLoop,
    Wait,
    Work,
    cost_key,
    instructions,
)

# ---- Stretches of code, their orders of issue, and the timing of instructions -------------------


class Stretch(NamedTuple):
    """Code without loops, in program order. The lists go by index into `code`.

    `waits` has the indices of the instructions that each one waits for.
    """

    code: Sequence[Instruction]
    classes: list[CostClass]
    waits: list[Sequence[int]]


class Order(NamedTuple):
    """An order of issue of a stretch: indices into its code, and the stream of each by index.

    A stream is a number, its position in `stream_ids`.
    """

    indices: list[int]
    streams: list[int]


FIRST_STREAM = {engine: number for number, engine in enumerate(Engine)}  # DMA has several, the last


def stream_ids(target: Target) -> list[StreamId]:
    """Return all streams of a core, in the order of the file."""
    return [
        StreamId(engine, queue)
        for engine in Engine
        for queue in range(target.dma_queues if engine is Engine.DMA else 1)
    ]


class CostClass:
    """A class of instructions with the same costs, and the facts that they share.

    These are their engine, timing on queue 0, `length` from start to result, activation table and
    queues, and the operand indices of the tiles that they wait for and write (none for a transfer).
    `is_fixed` tells whether all addresses are known at compile time;
    `is_rendezvous`, whether all cores run the instruction together.
    """

    __slots__ = (
        *("engine", "first", "is_fixed", "is_rendezvous", "length", "queues", "reads"),
        *("table", "times", "writes"),
    )

    def __init__(self, instruction: Instruction, target: Target) -> None:
        tiles = [type(operand) is AccessPattern for operand in instruction.operands]
        facts = instruction.facts(target)
        self.engine = engine_of(instruction)
        self.first = timing(instruction.row, facts, self.engine)
        self.length = self.first.start + self.first.hold + self.first.latency
        self.times = [self.first]  # by queue
        self.table = table_of(instruction)
        self.is_fixed = not any(
            type(operand) is AccessPattern and operand.kind for operand in instruction.operands
        )
        self.is_rendezvous = instruction.row.is_rendezvous
        self.queues, modes = range(1), list[Access]()
        if self.engine is Engine.DMA:
            self.queues = queues_of(instruction, target)
            by = {
                engine: timing(instruction.row, facts, self.engine, queue)
                for queue, engine in enumerate(target.queue_engines)
            }
            self.times = [by[engine] for engine in target.queue_engines]
        else:
            modes = [
                instruction.row.access_of(operand, facts) for operand in instruction.row.operands
            ]
        adds = instruction.row.accumulator
        self.reads = [i for i, mode in enumerate(modes) if mode.reads and i != adds and tiles[i]]
        self.writes = [i for i, mode in enumerate(modes) if mode.writes and tiles[i]]


class Timings:
    """Timings of instructions, computed once per cost class."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._classes: dict[tuple[object, ...], CostClass] = {}
        self._of_work: dict[tuple[Work, Engine | None], CostClass] = {}

    def cost_class(self, instruction: Instruction) -> CostClass:
        work = instruction.work
        if work is None:
            return self._by_content(instruction)
        cached = self._of_work.get((work, instruction.engine))
        if cached is None:
            cached = self._of_work[work, instruction.engine] = self._by_content(instruction)
        return cached

    def _by_content(self, instruction: Instruction) -> CostClass:
        row, operands, attributes, engine = instruction[:4]
        key = (row, attributes, engine, *map(cost_key, operands))
        cached = self._classes.get(key)
        if cached is None:
            cached = self._classes[key] = CostClass(instruction, self.target)
        return cached

    def of(self, instruction: Instruction, queue: int = 0) -> Timing:
        return self.cost_class(instruction).times[queue]


def table_of(instruction: Instruction) -> str:
    """Return the activation table that `instruction` needs, or an empty string."""
    return activation_table(instruction.row, instruction.attributes, engine_of(instruction))


def first_users(
    tables: Mapping[int, str], waits: Mapping[int, Sequence[int]] | Sequence[Sequence[int]]
) -> set[int]:
    """Return the instructions that no user of the same activation table precedes in any order.

    `tables` maps each instruction's number, or index, to the table that it needs, in program order.
    """
    bits = {table: 1 << i for i, table in enumerate(sorted({*tables.values()} - {""}))}
    if not bits:
        return set()
    users, used_after = set[int](), dict[int, int]()  # the tables used by then, as bits
    for number, table in tables.items():
        used = 0
        for source in waits[number]:
            used |= used_after[source]
        needed = bits.get(table, 0)
        if needed & ~used:
            users.add(number)
        used_after[number] = used | needed
    return users


def tensor_of(operand: Operand) -> int:
    """Return the number of the operand's tensor, or -1 if it has none."""
    return operand.tensor.number if isinstance(operand, AccessPattern) else -1


def engine_of(instruction: Instruction) -> Engine:
    return instruction.engine or instruction.row.engines[0]


def queues_of(instruction: Instruction, target: Target) -> range:
    """Return the DMA queues that a transfer may take: half of them lead on chip."""
    half = max(1, target.dma_queues // 2)
    return range(half, target.dma_queues) if _leaves_chip(instruction) else range(half)


def _leaves_chip(instruction: Instruction) -> bool:
    """Return whether the transfer goes to HBM or to the debug stream, which has no dst."""
    if "dst" not in instruction.row.operand_index:
        return True
    dst = instruction.operand("dst")
    return isinstance(dst, AccessPattern) and not dst.tensor.on_chip


# ------------------------------------------------------------------------------------------------
# Loop-carried waits between consecutive iterations of a device loop without a barrier.
# Completion is tracked with vector clocks, as in `semaphores`, but over the previous iteration: a
# compute engine has completed its own items of that iteration, and an item that waits for a signal
# inherits the clock of the signalling item. An inner loop is surrounded by barriers, so only the
# items before the first inner loop wait, and only for items after the last inner loop.

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


# --------------------------------------------------------------------------------------------------

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
        self.items.append(item)
        self.waits.append(())
        self.signals.append(())

    def wait(self, position: int, semaphore: _Semaphore) -> None:
        self.waits[position - 1] += semaphore

    def signal(self, position: int, semaphore: _Semaphore) -> None:
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
            position, own, clock = len(builder.items), builder.own_index, builder.clock
            needed: list[_EventFields] = []  # that are not known to be complete
            for source in waits[index]:
                event = events[source]
                if event[0] != own and clock[event[0]] < event[1]:
                    needed.append(event)
            if len(needed) > 1:
                needed = _without_implied(_latest(needed))
            for event in needed:
                self._connect(event[0], event[1], builder, position)
                builder.learn(event)
            events[index] = (builder.index, position, builder.clock, builder.via)
            if self.local_waits is not None:
                self.local_waits[code[index].number] = [Event(*event[:3]) for event in needed]
        if self.depth:
            self.events.update((code[index].number, events[index]) for index in order.indices)

    def _connect(
        self, index: int, source_position: int, builder: _StreamBuilder, position: int
    ) -> None:
        """Make the item at `position` in `builder` wait for that of stream `index`."""
        semaphore = builder.semaphores.get(index)
        if semaphore is None:
            semaphore = builder.semaphores[index] = self._semaphore(index, builder.index)
        self.builders[index].signals[source_position - 1] += semaphore
        builder.waits[position - 1] += semaphore

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
    return [a if a > b else b for a, b in zip(clock, other)]  # noqa: B905, which takes a third


def _latest(events: Iterable[_EventFields]) -> list[_EventFields]:
    latest: dict[int, _EventFields] = {}
    for event in events:
        known = latest.get(event[0])
        if known is None or known[1] < event[1]:
            latest[event[0]] = event
    return [*latest.values()]


def _without_implied(waits: list[_EventFields]) -> list[_EventFields]:
    """Drop the waits that another of the waits implies."""
    kept: list[_EventFields] = []
    for wait in waits:
        index, position, _, _ = wait
        for other in waits:
            if other[2][index] >= position and other[0] != index:
                break
        else:
            kept.append(wait)
    return kept
