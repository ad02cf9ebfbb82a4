"""The schedule stage: orders and wires every core."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from nkic.compiler.semaphores import (
    FIRST_STREAM,
    CostClass,
    Order,
    Stretch,
    Timings,
    Wiring,
    engine_of,
    first_users,
    overlaps,
    stream_ids,
    table_of,
)
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import (
    Entry,
    EventLoop,
    Line,
    Queue,
    Tables,
    Timing,
    Warmth,
    overlaps_commands,
    semaphore_ps,
)
from nkic.program.program import (
    Body,
    DependenceGraph,
    Edge,
    Instruction,
    Loop,
    Program,
    Schedule,
    Stream,
    Tensor,
    instructions,
)

# ---- The time of an order of issue, found by replaying the streams that it becomes --------------
# List scheduling decides without knowing what comes later and takes its times from that. Here the
# order is known: each stream runs its items in order, as their dependences complete. Items wait
# for instructions by number. The waits of the file, which has a semaphore for each pair of
# streams, lead to the same times, since a stream sends its signals in order.


def replayed(order: Order, stretch: Stretch, target: Target) -> int | None:
    """Return the picoseconds from the first issue to the last completion, or None on deadlock."""
    ids = stream_ids(target)
    streams: list[list[int]] = [[] for _ in ids]
    for index in order.indices:
        streams[order.streams[index]].append(index)
    lines: list[Line] = []
    for (engine, queue), items in zip(ids, streams, strict=True):
        # The entries are made as they are taken: a million take 100 MB.
        is_dma = engine is Engine.DMA
        entries = _transfers(items, queue, stretch) if is_dma else _work(items, engine, stretch)
        if items:
            lines.append(Line(len(lines), 0, engine, queue, entries, target))
    return _OrderLoop(lines, len(stretch.code), target).run()


class _OrderLoop(EventLoop):
    """The event loop for items that wait for instructions by index, without semaphores.

    An entry's `waits` are the indices of the awaited instructions, and its only signal is its own
    index. The other cores are unknown, so that no item is a rendezvous.
    """

    def __init__(self, lines: Sequence[Line], count: int, target: Target) -> None:
        super().__init__(lines, 1, 0, target)
        self.done = [-1] * count  # when each instruction's stream had completed it
        self.waiting: dict[int, list[Line]] = {}

    def _arrival(self, line: Line, waits: Sequence[int]) -> int | None:
        latest, done = 0, self.done
        for index in waits:
            time = done[index]
            if time < 0:
                self.waiting.setdefault(index, []).append(line)
                return None
            if time > latest:
                latest = time
        return latest + self.semaphore_ps

    def _pass_signals(self, line: Line, item: Entry, start: int, queue: Queue) -> None:
        index: int = item.signals
        self.done[index] = line.done
        if index in self.waiting:
            for waiting in self.waiting.pop(index):
                heappush(queue, (max(waiting.free, start), waiting.index))


def _transfers(items: Sequence[int], queue: int, stretch: Stretch) -> Iterator[Entry]:
    """Yield the timing entries of a queue, which does not wait for its own transfers."""
    _, classes, waits = stretch
    for index in items:
        cost = classes[index]
        yield Entry(cost.times[queue], "", not cost.is_fixed, False, waits[index], index)


def _work(items: Sequence[int], engine: Engine, stretch: Stretch) -> Iterator[Entry]:
    """Yield the timing entries of a compute engine, which sees its own results."""
    code, classes, waits = stretch
    written = set[Tensor]()  # by the previous item
    for index in items:
        cost, sources = classes[index], waits[index]
        if sources:
            sources = [source for source in sources if classes[source].engine is not engine]
        operands: Sequence[Any] = code[index].operands
        follows = not cost.is_fixed
        if written and not follows:
            follows = not written.isdisjoint([operands[i].tensor for i in cost.reads])
        written = {operands[i].tensor for i in cost.writes} if cost.is_fixed else set()
        yield Entry(cost.first, cost.table, follows, False, sources, index)


# ------------------------------------------------------------------------------------------------
# The order of one straight-line stretch of code: list scheduling under the cost model.
# An instruction is ready when all its dependences are complete. Among the instructions that are
# ready on an engine, the one with the longest path to the end goes first; ties are broken by
# program order, so the result is a function of the program alone. With `in_order`, each engine
# takes its instructions in program order instead. Half of the DMA queues bring data on chip and
# half take data away, so that no load queues behind a store that waits for its data. A transfer
# takes the queue whose data have moved first, as one engine triggers the transfers of all queues: a
# queue is a ring that moves data in order.
#
# Rendezvous of cores are issued in program order, each in the stream that its pipe selects, so
# every core reaches them in the same order. The orders of issue of all cores are then consistent,
# and no core waits for a rendezvous behind one that another core has not reached.

_DMA = Engine.DMA
COLLECTIVES = 1  # the pipe whose queue collectives take
# A list schedule within this factor of the busiest engine's time is kept as it is.
GOOD_ENOUGH_FACTOR = 1.005


class _Lane:
    """One engine: its ready instructions, its pending ones, and when the engine is free.

    Ready instructions are priorities (`ListScheduler.priorities`), and pending ones have the time
    at which they become ready.
    """

    __slots__ = ("commanded", "engine", "free", "overlaps", "pending", "ready", "stream")

    def __init__(self, engine: Engine, free: int = 0) -> None:
        self.engine = engine
        self.stream = FIRST_STREAM[engine]
        self.free = free
        self.commanded = 0  # when the engine ends its last trigger
        self.overlaps = overlaps_commands(engine)
        self.ready: list[int] = []
        self.pending: list[tuple[int, int]] = []  # (time, index)

    def start(self) -> int | None:
        """Return when its next instruction can start, or None without one."""
        if self.ready:
            return self.free
        return max(self.free, self.pending[0][0]) if self.pending else None

    def trigger(self, start: int, time: int) -> int:
        """Trigger a transfer that could start at `start`, and return when it does."""
        begins = max(start, self.commanded if self.overlaps else self.free)
        until = self.commanded = begins + time
        if until > self.free:
            self.free = until
        return begins


class Orderer:
    def __init__(self, graph: DependenceGraph, target: Target, in_order: bool = False) -> None:
        self.graph = graph
        self.target = target
        self.keeps_order = in_order
        self.timings = Timings(target)
        self.tables = Tables(target)
        self.semaphore_ps = semaphore_ps(target)
        self.now = 0
        self.is_timed = True  # whether the stretches so far have the timing of a run
        self.busiest = 0  # the time of the busiest engine in the last stretch

    def known(self, code: Sequence[Instruction]) -> Stretch:
        """Return `code`, a stretch without loops, with all that its order depends on."""
        cost_class = self.timings.cost_class
        return Stretch(code, [cost_class(i) for i in code], self._waits(code))

    def _waits(self, code: Sequence[Instruction]) -> list[Sequence[int]]:
        edges = self.graph.edges
        index_of = {instruction.number: index for index, instruction in enumerate(code)}
        waits: list[Sequence[int]] = []
        for number in index_of:
            incoming = edges.get(number)
            if not incoming:
                waits.append(())
                continue
            sources = [
                index_of[source]
                for source, _, distance in incoming
                if not distance and source in index_of
            ]
            waits.append(tuple(sources if len(sources) < 2 else dict.fromkeys(sources)))
        return waits

    def order(self, stretch: Stretch) -> Order:
        """Return the order of issue of a stretch.

        This is the shorter of a list schedule and program order; program order is only tried if the
        list schedule is not already close to the busiest engine's time.
        """
        start = self.now
        order, time = self._timed(stretch, self.keeps_order)
        if not self.keeps_order and time > GOOD_ENOUGH_FACTOR * self.busiest:
            self.now = start
            in_order, in_order_time = self._timed(stretch, True)
            order, time = (in_order, in_order_time) if in_order_time < time else (order, time)
        self.now = start + time
        return order

    def _timed(self, stretch: Stretch, in_order: bool) -> tuple[Order, int]:
        """Return an order and the picoseconds that it takes, and set `busiest`."""
        start, scheduler = self.now, ListScheduler(self, stretch, in_order)
        order, self.busiest = scheduler.run(), scheduler.busiest()
        del scheduler  # its tables are large
        time = replayed(order, stretch, self.target)
        self.is_timed = self.is_timed and time is not None
        return order, self.now - start if time is None else time

    def in_turn(self, stretch: Stretch) -> Order:
        """Return program order, each instruction starting after the previous one."""
        self.is_timed = False
        for instruction in stretch.code:
            times = self.timings.of(instruction)
            self.now += self.tables.loading(table_of(instruction))
            self.now += times.start + times.hold + times.latency + self.semaphore_ps
        streams = [FIRST_STREAM[engine_of(instruction)] for instruction in stretch.code]
        return Order([*range(len(streams))], streams)


class ListScheduler:
    """List scheduling of one stretch.

    Instructions are indices into its code, and all lists go by index. `ready_at`, `done` and
    `Orderer.now` are in picoseconds.
    """

    def __init__(self, orderer: Orderer, stretch: Stretch, in_order: bool = False) -> None:
        self.orderer = orderer
        self.in_order = in_order
        self.code, self.classes, self.waits = stretch
        count = len(self.code)
        self.counts = Counter(self.classes)
        self.missing = [len(sources) for sources in self.waits]
        self.waiters: list[list[int]] = [[] for _ in range(count)]
        for index, sources in enumerate(self.waits):
            for source in sources:
                self.waiters[source].append(index)
        # Bits of an index. In program order no two instructions of an engine are ready at once.
        self.shift = count.bit_length()
        self.priorities = range(count) if in_order else self._priorities()
        self.following = self._in_turn()
        for followers in self.following.values():
            for follower in followers:
                self.missing[follower] += 1
        self.lanes = {engine: _Lane(engine, orderer.now) for engine in Engine}
        shared = {cost_class.engine for cost_class in self.counts}
        self.working = [lane for engine, lane in self.lanes.items() if engine in shared]
        self.queues = [0] * orderer.target.dma_queues  # until when the data of each move
        self.ready_at = [orderer.now] * count
        self.done = [0] * count
        self.streams = [0] * count
        self.tables = Tables(orderer.target)
        self.warmth = Warmth(orderer.target)

    def _in_turn(self) -> dict[int, list[int]]:
        """Map each instruction to those that must be issued after it, dependent or not."""
        following: dict[int, list[int]] = defaultdict(list)
        if not self.in_order and not any(c.is_rendezvous for c in self.counts):
            return following
        chains: dict[object, list[int]] = defaultdict(list)
        for index, cost_class in enumerate(self.classes):
            if cost_class.is_rendezvous:
                chains["rendezvous"].append(index)
            if self.in_order:
                chains[cost_class.engine].append(index)
        for chain in chains.values():
            for earlier, later in itertools.pairwise(chain):
                following[earlier].append(later)
        return following

    def _priorities(self) -> Sequence[int]:
        """Return numbers whose order is that of priority, the highest first.

        This is the longest path from an instruction's start to the end of the stretch, then program
        order. Paths include activation table loads. The low bits are the index.
        """
        classes, waiters_of, load = self.classes, self.waiters, self.orderer.tables.load
        tables = any(cost_class.table for cost_class in self.counts)
        users = {i: c.table for i, c in enumerate(classes)} if tables else {}
        loading = first_users(users, self.waits)
        heights = [0] * len(classes)
        for index in range(len(classes) - 1, -1, -1):
            height = classes[index].length
            waiters = waiters_of[index]
            if waiters:
                height += max([heights[waiter] for waiter in waiters])
            if index in loading:
                height += load
            heights[index] = height
        shift = self.shift
        return [index - (height << shift) for index, height in enumerate(heights)]

    def busiest(self) -> int:
        """Return the minimum busy time of the busiest engine, a lower bound of the stretch.

        It includes the triggers that no other engine can take.
        """
        busy = dict.fromkeys(Engine, 0)
        for cost_class, count in self.counts.items():
            times, engine = cost_class.first, cost_class.engine
            if engine is not Engine.DMA:
                busy[engine] += count * times.hold
                continue
            busy[engine] += count * times.pool
            if not overlaps_commands(times.by):
                busy[times.by] += count * times.trigger
        return max(busy.values())

    def run(self) -> Order:
        """Return the whole stretch in order of issue."""
        self.begin()
        return Order([*self.issues()], self.streams)

    def begin(self) -> None:
        """Make the instructions without dependences ready."""
        for index, count in enumerate(self.missing):
            if count == 0:
                self._make_ready(index)

    def _make_ready(self, index: int) -> None:
        lane, time = self.lanes[self.classes[index].engine], self.ready_at[index]
        if time > lane.free:
            heappush(lane.pending, (time, index))
        else:
            heappush(lane.ready, self.priorities[index])

    def issues(self) -> Iterator[int]:
        """Issue one instruction after the other, the one that can start first over all engines."""
        code, classes, streams, done = self.code, self.classes, self.streams, self.done
        transfer, busy, first_free = self._transfer, self._busy, self.queues.__getitem__
        release, end = self._release_waiters, self.orderer.now
        for _ in code:
            start, lane = self._next_lane()
            pending, ready = lane.pending, lane.ready
            while pending and pending[0][0] <= start:
                heappush(ready, self.priorities[heappop(pending)[1]])
            index = heappop(ready) & (1 << self.shift) - 1
            cost_class = classes[index]
            if lane.engine is _DMA:
                queue = (
                    self._rendezvous_queue(code[index])
                    if cost_class.is_rendezvous
                    else min(cost_class.queues, key=first_free)
                )
                free = completed = transfer(cost_class.times[queue], lane, queue, start)
                streams[index] = lane.stream + queue
            else:
                free = lane.free = busy(cost_class, start)
                completed = free + cost_class.first.latency
                streams[index] = lane.stream
            done[index] = completed
            if completed > end:
                end = self.orderer.now = completed
            release(index, free, completed)
            yield index

    def _busy(self, cost_class: CostClass, start: int) -> int:
        """Return until when a compute engine is busy with an instruction that starts at `start`."""
        hold = cost_class.first.hold
        if cost_class.engine is Engine.SCALAR:
            return start + self.tables.loading(cost_class.table) + hold
        if cost_class.engine is Engine.TENSOR:
            return start + self.warmth.duration(start, cost_class.first)
        return start + hold

    def _transfer(self, times: Timing, lane: _Lane, queue: int, start: int) -> int:
        """Move a transfer's data, and return when they have arrived."""
        hold, latency, lead, pool, trigger, by, *_ = times
        if trigger:
            start = self.lanes[by].trigger(start, trigger)
        lane.free = start + pool
        busy = self.queues
        if busy[queue] > start:
            start = busy[queue]
        busy[queue] = start + hold
        return start + hold + lead + latency

    def _release_waiters(self, index: int, free: int, done: int) -> None:
        """Release the instructions that wait for `index`, which leaves its engine at `free`."""
        missing, ready_at, classes = self.missing, self.ready_at, self.classes
        engine, signalled = classes[index].engine, done + self.orderer.semaphore_ps
        for waiter in self.waiters[index]:
            earliest = signalled
            if engine is classes[waiter].engine is not _DMA:
                earliest = self._seen(index, waiter, free, done)
            if earliest > ready_at[waiter]:
                ready_at[waiter] = earliest
            remaining = missing[waiter] = missing[waiter] - 1
            if not remaining:
                self._make_ready(waiter)
        if index in self.following:
            for follower in self.following[index]:
                self.release(follower)

    def _seen(self, index: int, waiter: int, free: int, done: int) -> int:
        """Return when `waiter` can start after `index` on the same compute engine.

        The engine needs no signal for its own results, and need not wait for a sum to add to it.
        """
        source, target = self.code[index], self.code[waiter]
        operand = source.row.accumulator
        adds = operand >= 0 and target.row is source.row
        return free if adds and source.operands[operand] == target.operands[operand] else done

    def release(self, index: int) -> None:
        """Remove one dependence of `index`, and make it ready if none is left."""
        self.missing[index] -= 1
        if self.missing[index] == 0:
            self._make_ready(index)

    def _rendezvous_queue(self, instruction: Instruction) -> int:
        """Return the queue for a rendezvous, which is the same on all cores."""
        count, pipe = len(self.queues), instruction.row.queue
        number = instruction.attribute(pipe) if pipe else COLLECTIVES
        return count - 1 - number % (count // 2)  # one of those that take data away

    def next_start(self) -> int | None:
        """Return when the next instruction can start, or None if none is ready or pending."""
        return min((s for lane in self.working if (s := lane.start()) is not None), default=None)

    def _next_lane(self) -> tuple[int, _Lane]:
        best: _Lane | None = None
        first = 0
        for lane in self.working:
            start = lane.free
            if not lane.ready:
                if not lane.pending:
                    continue
                pending = lane.pending[0][0]
                if pending > start:
                    start = pending
            if best is None or start < first:
                first, best = start, lane
        if best is None:
            raise ValueError("the dependence graph has a cycle")
        return first, best


# ---- The order of issue for the body of a device loop whose iterations overlap ------------------
# The best order for a single iteration need not be the best for overlapping ones: the start of the
# next iteration competes for engines with the end of this one. So several iterations are scheduled
# as straight-line code, and the order found for a middle iteration is kept if the loop runs faster
# with it.

ITERATIONS = 4  # from the second on, an iteration waits for the previous one like all later ones
MIDDLE_ITERATIONS = (1, 2)  # a transfer may use different queues in each
MAX_INSTRUCTIONS = 2000  # instructions in a body; the gain from overlap is small in longer bodies


def iteration(orderer: Orderer, body: Stretch) -> Order:
    """Return the order of issue for the body of a loop whose iterations overlap."""
    single = orderer.order(body)
    if orderer.keeps_order or not 0 < len(body.code) <= MAX_INSTRUCTIONS:
        return single
    unrolled = _UnrolledBody(orderer, body)
    orders = [single, *unrolled.middle_orders()]
    times = [unrolled.time(order) for order in orders]
    if any(time is None for time in times):
        return single
    return orders[times.index(min(time for time in times if time is not None))]


class _UnrolledBody:
    """Consecutive iterations of a body: each instruction has one copy per iteration."""

    def __init__(self, orderer: Orderer, body: Stretch) -> None:
        self.orderer = orderer
        self.size = len(body.code)
        self.copies = Stretch(
            [*body.code] * ITERATIONS, body.classes * ITERATIONS, self._waits(body.code)
        )

    def _waits(self, code: Sequence[Instruction]) -> list[Sequence[int]]:
        """Return the copies that each copy waits for in its own and the previous iteration."""
        index_of = {instruction.number: index for index, instruction in enumerate(code)}
        edges = [
            [
                (index_of[edge.source], edge.distance)
                for edge in self.orderer.graph.sources(number)
                if edge.source in index_of
            ]
            for number in index_of
        ]
        return [
            sorted({(n - distance) * self.size + i for i, distance in sources if distance <= n})
            for n in range(ITERATIONS)
            for sources in edges
        ]

    def middle_orders(self) -> Iterator[Order]:
        """Yield the orders that list scheduling finds for the middle iterations."""
        start, size = self.orderer.now, self.size
        indices, streams = ListScheduler(self.orderer, self.copies).run()
        self.orderer.now = start
        for low in (n * size for n in MIDDLE_ITERATIONS):
            inside = [index - low for index in indices if low <= index < low + size]
            yield Order(inside, streams[low : low + size])

    def time(self, order: Order) -> int | None:
        """Return the picoseconds that all iterations take in `order`, or None on deadlock."""
        starts = range(0, ITERATIONS * self.size, self.size)
        indices = [start + index for start in starts for index in order.indices]
        repeated = Order(indices, order.streams * ITERATIONS)
        return replayed(repeated, self.copies, self.orderer.target)


# --------------------------------------------------------------------------------------------------


def schedule(
    program: Program,
    graphs: Sequence[DependenceGraph],
    serial: bool = False,
    in_order: bool = False,
) -> Schedule:
    """Return the streams of every core.

    With `serial`, instructions run one at a time in program order; with `in_order`, each engine
    runs its instructions in program order.
    """
    cores, estimate, timed, busiest = [], 0, len(program.cores) == 1, 0
    for body, graph in zip(program.cores, graphs, strict=True):
        target = program.target.used_by(len(program.cores))
        core = _CoreScheduler(target, _chain(body) if serial else graph, serial, in_order)
        cores.append(core.streams(body))
        estimate = max(estimate, core.orderer.now)
        timed = timed and core.is_timed(body)
        busiest = core.orderer.busiest if timed else 0
    return Schedule(program, tuple(cores), estimate / 1000, serial, timed, busiest / 1000)


def _chain(body: Body) -> DependenceGraph:
    """Return a graph in which each instruction waits for the previous one in program order."""
    numbers = [i.number for i in instructions(body)]
    return DependenceGraph({n: (Edge(p, "pin"),) for p, n in itertools.pairwise(numbers)})


class _CoreScheduler:
    def __init__(
        self, target: Target, graph: DependenceGraph, serial: bool, in_order: bool
    ) -> None:
        self.serial = serial
        self.orderer = Orderer(graph, target, in_order)
        self.wiring = Wiring(stream_ids(target), graph, target.semaphores, not serial)

    def streams(self, body: Body) -> tuple[Stream, ...]:
        self.body(body)
        return self.wiring.streams()

    def body(self, body: Body) -> None:
        stretch: list[Instruction] = []
        for item in body:
            if isinstance(item, Instruction):
                stretch.append(item)
                continue
            self.stretch(stretch)
            stretch = []
            self.loop(item)
        self.stretch(stretch)

    def stretch(self, code: list[Instruction]) -> None:
        stretch = self.orderer.known(code)
        order = self.orderer.in_turn(stretch) if self.serial else self.orderer.order(stretch)
        self.wiring.add(stretch, order)

    def is_timed(self, body: Body) -> bool:
        """Return whether the estimate is the time of a run.

        It is not if loops cut the code into stretches, or if the program has a rendezvous with
        other ranks.
        """
        alone = not any(isinstance(item, Loop) or item.row.is_rendezvous for item in body)
        return alone and self.orderer.is_timed

    def loop(self, loop: Loop) -> None:
        body = [item for item in loop.body if isinstance(item, Instruction)]
        if self.serial or len(body) < len(loop.body) or not overlaps(loop):
            self.wiring.loop(loop, lambda: self.body(loop.body))
        else:
            self.wiring.loop(loop, lambda: self.overlapping(body))

    def overlapping(self, code: list[Instruction]) -> None:
        """Add the body of a loop whose iterations overlap."""
        stretch = self.orderer.known(code)
        self.wiring.add(stretch, iteration(self.orderer, stretch))
