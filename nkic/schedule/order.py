"""The order of one straight-line stretch of code: list scheduling under the cost model.

An instruction is ready when all its dependences are complete. Among the instructions that are ready
on an engine, the one with the longest path to the end goes first; ties are broken by program order,
so the result is a function of the program alone. With `in_order`, each engine takes its
instructions in program order instead. Half of the DMA queues bring data on chip and half take data
away, so that no load queues behind a store that waits for its data. A transfer takes the queue with
the shortest wait, and among equals the queue that has been idle longest: a queue is a ring that
moves data in order.

Rendezvous of cores are issued in program order, each in the stream that its pipe selects, so every
core reaches them in the same order. The orders of issue of all cores are then consistent, and no
core waits for a rendezvous behind one that another core has not reached.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Tables, Timing, Warmth, overlaps_commands, semaphore_ps
from nkic.schedule.placed import CostClass, Placed, Timings, engine_of, first_users, table_of
from nkic.schedule.replay import replayed

_DMA = Engine.DMA
Waits = dict[int, tuple[int, ...]]  # numbers of the awaited instructions, by number
COLLECTIVES = 1  # the pipe whose queue collectives take
# A list schedule within this factor of the busiest engine's time is kept as it is.
GOOD_ENOUGH_FACTOR = 1.005


@dataclass
class _Lane:
    """One engine: its ready instructions, its pending ones, and when the engine is free."""

    engine: Engine
    free: int = 0
    streams: list[StreamId] = field(default_factory=list)  # by queue
    ready: list[tuple[int, int]] = field(default_factory=list)  # (-height, number)
    pending: list[tuple[int, int]] = field(default_factory=list)  # (time, number)

    def start(self) -> int | None:
        """Return when its next instruction can start, or None without one."""
        if self.ready:
            return self.free
        return max(self.free, self.pending[0][0]) if self.pending else None

    def take(self, now: int, heights: Mapping[int, int]) -> int:
        """Remove and return the highest instruction that can start at `now`."""
        pending, ready = self.pending, self.ready
        while pending and pending[0][0] <= now:
            number = heappop(pending)[1]
            heappush(ready, (-heights[number], number))
        return heappop(ready)[1]


class _Queues:
    """DMA queues by the time at which they can take the next transfer.

    `lanes` are the engines that trigger transfers, `shared` those that also have other work.
    """

    def __init__(self, target: Target, lanes: Mapping[Engine, _Lane], shared: set[Engine]) -> None:
        self.busy = [0] * target.dma_queues  # until the queue's data have moved
        self.commands = dict.fromkeys(Engine, 0)  # when each engine ends its last trigger
        self.beside = {engine for engine in Engine if overlaps_commands(engine)}
        self.half = max(1, target.dma_queues // 2)
        self.engines = target.queue_engines
        self.lanes = lanes
        self.shared = shared
        self.groups: dict[range, list[list[int]]] = {}  # queues by triggering engine

    def of_pipe(self, pipe: int) -> int:
        """Return the queue for rendezvous on `pipe`, among those that take data away."""
        return len(self.busy) - 1 - pipe % self.half

    def choose(self, start: int, queues: range, times: Sequence[Timing]) -> int:
        """Return the cheapest of `queues` for a transfer that can start at `start`.

        `times` has the transfer's timing on every queue. An engine with other work is chosen only
        if this saves more time than the trigger costs the engine.
        """
        # Among an engine's queues, the first to be free costs least.
        first_free = self.busy.__getitem__
        groups = self.groups.get(queues) or self._grouped(queues)
        if len(groups) == 1:
            return min(groups[0], key=first_free)
        busy = self.busy
        candidates = [g[0] if len(g) == 1 else min(g, key=first_free) for g in groups]
        return min([(self._cost(q, start, times[q]), busy[q], q) for q in candidates])[2]

    def _grouped(self, queues: range) -> list[list[int]]:
        """Return `queues` grouped by the engine that triggers their transfers."""
        engines = dict.fromkeys(self.engines[q] for q in queues)
        groups = [[q for q in queues if self.engines[q] is engine] for engine in engines]
        self.groups[queues] = groups
        return groups

    def _cost(self, queue: int, start: int, times: Timing) -> int:
        engine, trigger = self.engines[queue], times.trigger
        begins = self.triggered(engine, start)
        blocked = max(0, begins + trigger - self.lanes[engine].free) if engine in self.shared else 0
        return max(begins, self.busy[queue]) + times.start + min(blocked, trigger)

    def triggered(self, engine: Engine, start: int) -> int:
        """Return when `engine` can trigger a transfer that could start at `start`."""
        free = self.commands[engine] if engine in self.beside else self.lanes[engine].free
        return free if free > start else start


def _streams(engine: Engine, target: Target) -> list[StreamId]:
    return [StreamId(engine, queue) for queue in range(target.dma_queues if engine is _DMA else 1)]


class Orderer:
    """Schedules the stretches of one core, one after the other."""

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

    def stretch(self, code: Sequence[Instruction]) -> list[Placed]:
        """Return the order of issue for `code`, a stretch without loops.

        This is the shorter of a list schedule and program order; program order is only tried if the
        list schedule is not already close to the busiest engine's time.
        """
        instructions = {i.number: i for i in code}
        waits, classes = self.waits(instructions), self.timings.each(instructions)
        start = self.now
        order, time = self._timed(instructions, waits, classes, self.keeps_order)
        if not self.keeps_order and time > GOOD_ENOUGH_FACTOR * self.busiest:
            self.now = start
            in_order, in_order_time = self._timed(instructions, waits, classes, True)
            order, time = (in_order, in_order_time) if in_order_time < time else (order, time)
        self.now = start + time
        return order

    def _timed(
        self,
        instructions: dict[int, Instruction],
        waits: Waits,
        classes: dict[int, CostClass],
        in_order: bool,
    ) -> tuple[list[Placed], int]:
        """Return an order and the picoseconds that it takes, and set `busiest`."""
        start, scheduler = self.now, ListScheduler(self, instructions, waits, in_order, classes)
        order, self.busiest = scheduler.run(), scheduler.busiest()
        del scheduler  # its tables are large
        time = replayed(order, waits, classes, self.target)
        self.is_timed = self.is_timed and time is not None
        return order, self.now - start if time is None else time

    def waits(self, instructions: Mapping[int, Instruction]) -> Waits:
        """Map each instruction to the instructions of the stretch that it waits for."""
        edges, waits = self.graph.edges, Waits()
        for number in instructions:
            incoming = edges.get(number)
            if not incoming:
                waits[number] = ()
                continue
            sources = [s for s, _, distance in incoming if not distance and s in instructions]
            waits[number] = tuple(sources if len(sources) < 2 else sorted(set(sources)))
        return waits

    def in_turn(self, code: Sequence[Instruction]) -> list[Placed]:
        """Return `code` in program order, each instruction starting after the previous one."""
        self.is_timed = False
        for instruction in code:
            times = self.timings.of(instruction)
            self.now += self.tables.loading(table_of(instruction))
            self.now += times.start + times.hold + times.latency + self.semaphore_ps
        return [Placed(i, StreamId(engine_of(i))) for i in code]


class ListScheduler:
    """List scheduling of one stretch.

    `code` maps numbers to instructions, in program order; `waits` has the dependences of each.
    `ready_at`, `done` and `Orderer.now` are in picoseconds.
    """

    def __init__(
        self,
        orderer: Orderer,
        code: dict[int, Instruction],
        waits: Mapping[int, Sequence[int]],
        in_order: bool = False,
        classes: dict[int, CostClass] | None = None,
    ) -> None:
        self.orderer = orderer
        self.in_order = in_order
        self.code = code
        self.classes = orderer.timings.each(code) if classes is None else classes
        self.missing = {n: len(sources) for n, sources in waits.items()}
        self.waiters: dict[int, list[int]] = defaultdict(list)
        for number, sources in waits.items():
            for source in sources:
                self.waiters[source].append(number)
        distinct = set(self.classes.values())
        # In program order no two instructions of an engine are ready at once.
        tables = any(cost_class.table for cost_class in distinct)
        self.heights = dict.fromkeys(code, 0) if in_order else self._heights(waits, tables)
        self.following = (
            self._in_turn() if in_order or any(c.is_rendezvous for c in distinct) else {}
        )
        for followers in self.following.values():
            for follower in followers:
                self.missing[follower] += 1
        self.lanes = {e: _Lane(e, orderer.now, _streams(e, orderer.target)) for e in Engine}
        shared = {cost_class.engine for cost_class in distinct}
        self.working = [lane for engine, lane in self.lanes.items() if engine in shared]
        self.queues = _Queues(orderer.target, self.lanes, shared)
        self.ready_at = dict.fromkeys(code, orderer.now)
        self.done: dict[int, int] = {}
        self.tables = Tables(orderer.target)
        self.warmth = Warmth(orderer.target)

    def _in_turn(self) -> dict[int, list[int]]:
        """Map each instruction to those that must be issued after it, dependent or not."""
        chains: dict[object, list[int]] = defaultdict(list)
        for number, cost_class in self.classes.items():
            if cost_class.is_rendezvous:
                chains["rendezvous"].append(number)
            if self.in_order:
                chains[cost_class.engine].append(number)
        following: dict[int, list[int]] = defaultdict(list)
        for chain in chains.values():
            for earlier, later in itertools.pairwise(chain):
                following[earlier].append(later)
        return following

    def _heights(self, waits: Mapping[int, Sequence[int]], tables: bool) -> dict[int, int]:
        """Return the longest path from each instruction's start to the end of the stretch.

        Paths include activation table loads, if `tables`.
        """
        heights: dict[int, int] = {}
        classes, waiters_of = self.classes, self.waiters.get
        users = {n: c.table for n, c in classes.items()} if tables else {}
        loading = first_users(users, waits)
        for number in reversed(self.code):
            height = classes[number].length
            waiters = waiters_of(number)
            if waiters:
                height += max([heights[waiter] for waiter in waiters])
            if number in loading:
                height += self.orderer.tables.load
            heights[number] = height
        return heights

    def busiest(self) -> int:
        """Return the minimum busy time of the busiest engine, a lower bound of the stretch.

        It includes the triggers that no other engine can take.
        """
        busy, target = dict.fromkeys(Engine, 0), self.orderer.target
        for cost_class, count in Counter(self.classes.values()).items():
            times, engine = cost_class.first, cost_class.engine
            if engine is not Engine.DMA:
                busy[engine] += count * times.hold
                continue
            busy[engine] += count * times.pool
            named = times.by is not target.queue_engines[0]  # by the kernel
            if overlaps_commands(times.by):
                continue
            if named or len({target.queue_engines[q] for q in cost_class.queues}) == 1:
                busy[times.by] += count * times.trigger
        return max(busy.values())

    def run(self) -> list[Placed]:
        """Return the whole stretch in order of issue."""
        self.begin()
        return [self.issue() for _ in self.code]

    def begin(self) -> None:
        """Make the instructions without dependences ready."""
        for number, count in self.missing.items():
            if count == 0:
                self._make_ready(number)

    def _make_ready(self, number: int) -> None:
        heappush(self.lanes[self.classes[number].engine].pending, (self.ready_at[number], number))

    def issue(self) -> Placed:
        """Issue the instruction that can start first over all engines."""
        start, lane = self._next_lane()
        number = lane.take(start, self.heights)
        instruction, cost_class, queue = self.code[number], self.classes[number], 0
        if lane.engine is _DMA:
            queue = (
                self._rendezvous_queue(instruction)
                if cost_class.is_rendezvous
                else self.queues.choose(start, cost_class.queues, cost_class.times)
            )
            free, done = self._transfer(cost_class.times[queue], lane, queue, start)
        else:
            free = lane.free = self._busy(cost_class, start)
            done = free + cost_class.first.latency
        self.done[number] = done
        if done > self.orderer.now:
            self.orderer.now = done
        self._release_waiters(number, free, done)
        return tuple.__new__(Placed, (instruction, lane.streams[queue]))

    def _busy(self, cost_class: CostClass, start: int) -> int:
        """Return until when a compute engine is busy with an instruction that starts at `start`."""
        hold = cost_class.first.hold
        if cost_class.engine is Engine.SCALAR:
            return start + self.tables.loading(cost_class.table) + hold
        if cost_class.engine is Engine.TENSOR:
            return start + self.warmth.stretched(start, hold)
        return start + hold

    def _transfer(self, times: Timing, lane: _Lane, queue: int, start: int) -> tuple[int, int]:
        """Return when the queue has moved a transfer's data, and when they have arrived."""
        hold, latency, lead, pool, *_ = times
        start = self._triggered(start, times)
        lane.free = start + pool
        busy = self.queues.busy
        free = busy[queue] = max(start, busy[queue]) + hold
        return free, free + lead + latency

    def _release_waiters(self, number: int, free: int, done: int) -> None:
        """Release the instructions that wait for `number`, which leaves its engine at `free`."""
        missing, ready_at = self.missing, self.ready_at
        signals = self.classes[number].engine is _DMA  # to all waiters
        signalled = done + self.orderer.semaphore_ps
        for waiter in self.waiters.get(number, ()):
            earliest = signalled
            if not signals:
                earliest = self._earliest_start(number, waiter, free, done)
            if earliest > ready_at[waiter]:
                ready_at[waiter] = earliest
            remaining = missing[waiter] = missing[waiter] - 1
            if not remaining:
                self._make_ready(waiter)
        for follower in self.following.get(number, ()):
            self.release(follower)

    def _earliest_start(self, number: int, waiter: int, free: int, done: int) -> int:
        """Return the earliest start of `waiter` after `number`.

        An engine needs no signal for its own results, and need not wait for a sum to add to it.
        """
        engine = self.classes[number].engine
        if engine is _DMA or engine is not self.classes[waiter].engine:
            return done + self.orderer.semaphore_ps
        source, target = self.code[number], self.code[waiter]
        index = source.row.accumulator
        adds = index >= 0 and target.row is source.row
        return free if adds and source.operands[index] == target.operands[index] else done

    def _triggered(self, start: int, times: Timing) -> int:
        """Return when the triggering engine can trigger a transfer, and mark the engine busy."""
        if not times.trigger:
            return start
        lane, begins = self.lanes[times.by], self.queues.triggered(times.by, start)
        until = self.queues.commands[times.by] = begins + times.trigger
        if until > lane.free:
            lane.free = until
        return begins

    def release(self, number: int) -> None:
        """Remove one dependence of `number`, and make it ready if none is left."""
        self.missing[number] -= 1
        if self.missing[number] == 0:
            self._make_ready(number)

    def _rendezvous_queue(self, instruction: Instruction) -> int:
        """Return the queue for a rendezvous, which is the same on all cores."""
        pipe = instruction.row.queue
        return self.queues.of_pipe(instruction.attribute(pipe) if pipe else COLLECTIVES)

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
                start = max(start, lane.pending[0][0])
            if best is None or start < first:
                first, best = start, lane
        if best is None:
            raise ValueError("the dependence graph has a cycle")
        return first, best
