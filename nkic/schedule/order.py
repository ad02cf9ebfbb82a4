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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Tables, Timing, Warmth, overlaps_commands, semaphore_ps
from nkic.schedule.placed import Alike, Placed, Timings, engine_of, first_users, table_of
from nkic.schedule.replay import replayed

_DMA = Engine.DMA
Waits = dict[int, tuple[int, ...]]  # numbers of the awaited instructions, by number
COLLECTIVES = 1  # the pipe whose queue collectives take
ENOUGH = 1.005  # a list schedule within this factor of the busiest engine's time is kept as it is


@dataclass
class _Lane:
    """One engine: its ready instructions, its pending ones, and when the engine is free."""

    engine: Engine
    free: int = 0
    streams: list[StreamId] = field(default_factory=list)  # by queue
    ready: list[tuple[int, int]] = field(default_factory=list)  # (-height, number)
    later: list[tuple[int, int]] = field(default_factory=list)  # (time, number)

    def start(self) -> int | None:
        """Return when its next instruction can start, or None without one."""
        if self.ready:
            return self.free
        return max(self.free, self.later[0][0]) if self.later else None

    def take(self, now: int, heights: Mapping[int, int]) -> int:
        """Remove and return the highest instruction that can start at `now`."""
        while self.later and self.later[0][0] <= now:
            number = heappop(self.later)[1]
            heappush(self.ready, (-heights[number], number))
        return heappop(self.ready)[1]


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

    def choose(self, start: int, queues: range, of: Callable[[int], Timing]) -> int:
        """Return the cheapest of `queues` for a transfer that can start at `start`.

        `of` returns the transfer's timing on a queue. An engine with other work is chosen only if
        this saves more time than the trigger costs the engine.
        """
        busy = self.busy  # among an engine's queues, the first to be free costs least
        groups = self.groups.get(queues) or self._grouped(queues)
        firsts = [min(group, key=busy.__getitem__) for group in groups]
        if len(firsts) == 1:
            return firsts[0]
        return min([(self._cost(q, start, of(q)), busy[q], q) for q in firsts])[2]

    def _grouped(self, queues: range) -> list[list[int]]:
        """Return `queues` grouped by the engine that triggers their transfers."""
        engines = dict.fromkeys(self.engines[q] for q in queues)
        found = [[q for q in queues if self.engines[q] is e] for e in engines]
        self.groups[queues] = found
        return found

    def _cost(self, queue: int, start: int, times: Timing) -> int:
        engine, trigger = self.engines[queue], times.trigger
        begins = self.triggered(engine, start)
        held = max(0, begins + trigger - self.lanes[engine].free) if engine in self.shared else 0
        return max(begins, self.busy[queue]) + times.start + min(held, trigger)

    def triggered(self, engine: Engine, start: int) -> int:
        """Return when `engine` can trigger a transfer that could start at `start`."""
        free = self.commands[engine] if engine in self.beside else self.lanes[engine].free
        return free if free > start else start


def _streams(engine: Engine, target: Target) -> list[StreamId]:
    return [StreamId(engine, q) for q in range(target.dma_queues if engine is _DMA else 1)]


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
        here = {i.number: i for i in code}
        waits, alikes = self.waits(here), self.timings.each(here)
        begun = self.now
        order, time = self._timed(here, waits, alikes, self.keeps_order)
        if not self.keeps_order and time > ENOUGH * self.busiest:
            self.now = begun
            kept, other = self._timed(here, waits, alikes, True)
            order, time = (kept, other) if other < time else (order, time)
        self.now = begun + time
        return order

    def _timed(
        self, here: dict[int, Instruction], waits: Waits, alikes: dict[int, Alike], in_order: bool
    ) -> tuple[list[Placed], int]:
        """Return an order and the picoseconds that it takes, and set `busiest`."""
        begun, listed = self.now, ListScheduler(self, here, waits, in_order, alikes)
        order, self.busiest = listed.go(), listed.busiest()
        del listed  # its tables are large
        time = replayed(order, waits, alikes, self.timings)
        self.is_timed = self.is_timed and time is not None
        return order, self.now - begun if time is None else time

    def waits(self, here: Mapping[int, Instruction]) -> Waits:
        """Map each instruction to the instructions of the stretch that it waits for."""
        edges, found = self.graph.edges, Waits()
        for number in here:
            own = edges.get(number)
            if not own:
                found[number] = ()
                continue
            sources = [source for source, _, far in own if not far and source in here]
            found[number] = tuple(sources if len(sources) < 2 else sorted(set(sources)))
        return found

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
        alikes: dict[int, Alike] | None = None,
    ) -> None:
        self.orderer = orderer
        self.in_order = in_order
        self.code = code
        self.alikes = orderer.timings.each(code) if alikes is None else alikes
        self.missing = {n: len(sources) for n, sources in waits.items()}
        self.waiters: dict[int, list[int]] = defaultdict(list)
        for number, sources in waits.items():
            for source in sources:
                self.waiters[source].append(number)
        kinds = set(self.alikes.values())
        # In program order no two instructions of an engine are ready at once.
        tables = any(kind.table for kind in kinds)
        self.heights = dict.fromkeys(code, 0) if in_order else self._heights(waits, tables)
        self.following = self._in_turn() if in_order or any(k.meets for k in kinds) else {}
        for followers in self.following.values():
            for later in followers:
                self.missing[later] += 1
        self.lanes = {e: _Lane(e, orderer.now, _streams(e, orderer.target)) for e in Engine}
        shared = {kind.engine for kind in kinds}
        self.working = [lane for engine, lane in self.lanes.items() if engine in shared]
        self.queues = _Queues(orderer.target, self.lanes, shared)
        self.ready_at = dict.fromkeys(code, orderer.now)
        self.done: dict[int, int] = {}
        self.tables = Tables(orderer.target)
        self.warmth = Warmth(orderer.target)

    def _in_turn(self) -> dict[int, list[int]]:
        """Map each instruction to those that must be issued after it, dependent or not."""
        chains: dict[object, list[int]] = defaultdict(list)
        for number, alike in self.alikes.items():
            if alike.meets:
                chains["rendezvous"].append(number)
            if self.in_order:
                chains[alike.engine].append(number)
        following: dict[int, list[int]] = defaultdict(list)
        for chain in chains.values():
            for one_number, later in itertools.pairwise(chain):
                following[one_number].append(later)
        return following

    def _heights(self, waits: Mapping[int, Sequence[int]], tables: bool) -> dict[int, int]:
        """Return the longest path from each instruction's start to the end of the stretch.

        Paths include activation table loads, if `tables`.
        """
        heights: dict[int, int] = {}
        alikes, waiters_of = self.alikes, self.waiters.get
        users = {n: alike.table for n, alike in alikes.items()} if tables else {}
        loading = first_users(users, waits)
        for number in reversed(self.code):
            height = alikes[number].length
            waiters = waiters_of(number)
            if waiters:
                height += max([heights[w] for w in waiters])
            if number in loading:
                height += self.orderer.tables.load
            heights[number] = height
        return heights

    def busiest(self) -> int:
        """Return the minimum busy time of the busiest engine, a lower bound of the stretch.

        It includes the triggers that no other engine can take.
        """
        busy, target = dict.fromkeys(Engine, 0), self.orderer.target
        for alike, count in Counter(self.alikes.values()).items():
            times, engine = alike.first, alike.engine
            if engine is not Engine.DMA:
                busy[engine] += count * times.hold
                continue
            busy[engine] += count * times.pool
            named = times.by is not target.queue_engines[0]  # by the kernel
            if overlaps_commands(times.by):
                continue
            if named or len({target.queue_engines[q] for q in alike.queues}) == 1:
                busy[times.by] += count * times.trigger
        return max(busy.values())

    def go(self) -> list[Placed]:
        """Return the whole stretch in order of issue."""
        self.begin()
        return [self.issue() for _ in self.code]

    def begin(self) -> None:
        """Make the instructions without dependences ready."""
        for number, count in self.missing.items():
            if count == 0:
                self._make_ready(number)

    def _make_ready(self, number: int) -> None:
        heappush(self.lanes[self.alikes[number].engine].later, (self.ready_at[number], number))

    def issue(self) -> Placed:
        """Issue the instruction that can start first over all engines."""
        start, lane = self._next_lane()
        number = lane.take(start, self.heights)
        one, alike, queue = self.code[number], self.alikes[number], 0
        if lane.engine is _DMA:
            queue = self._queue(one, alike, start)
            times = self.orderer.timings.on(queue, alike, one)
            free, done = self._transfer(times, lane, queue, start)
        else:
            free = lane.free = self._busy(alike, start)
            done = free + alike.first.latency
        self.done[number] = done
        if done > self.orderer.now:
            self.orderer.now = done
        self._let_go(number, free, done)
        return tuple.__new__(Placed, (one, lane.streams[queue]))

    def _busy(self, alike: Alike, start: int) -> int:
        """Return until when a compute engine is busy with an instruction that starts at `start`."""
        hold = alike.first.hold
        if alike.engine is Engine.SCALAR:
            return start + self.tables.loading(alike.table) + hold
        if alike.engine is Engine.TENSOR:
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

    def _let_go(self, number: int, free: int, done: int) -> None:
        """Release the instructions that wait for `number`, which leaves its engine at `free`."""
        missing, ready_at = self.missing, self.ready_at
        for waiter in self.waiters.get(number, ()):
            seen = self._seen(number, waiter, free, done)
            if seen > ready_at[waiter]:
                ready_at[waiter] = seen
            left = missing[waiter] = missing[waiter] - 1
            if not left:
                self._make_ready(waiter)
        for later in self.following.get(number, ()):
            self.release(later)

    def _seen(self, number: int, waiter: int, free: int, done: int) -> int:
        """Return the earliest start of `waiter` after `number`.

        An engine needs no signal for its own results, and need not wait for a sum to add to it.
        """
        engine = self.alikes[number].engine
        if engine is _DMA or engine is not self.alikes[waiter].engine:
            return done + self.orderer.semaphore_ps
        one, other = self.code[number], self.code[waiter]
        place = one.row.accumulator
        adds = place >= 0 and other.row is one.row
        return free if adds and one.operands[place] == other.operands[place] else done

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

    def _queue(self, instruction: Instruction, alike: Alike, start: int) -> int:
        if alike.meets:  # the same on all cores
            pipe = instruction.row.queue
            return self.queues.of_pipe(instruction.attribute(pipe) if pipe else COLLECTIVES)
        timings = self.orderer.timings
        return self.queues.choose(
            start, alike.queues, lambda queue: timings.on(queue, alike, instruction)
        )

    def next_start(self) -> int | None:
        """Return when the next instruction can start, or None if none is ready or pending."""
        return min((s for lane in self.working if (s := lane.start()) is not None), default=None)

    def _next_lane(self) -> tuple[int, _Lane]:
        best: _Lane | None = None
        first = 0
        for lane in self.working:
            start = lane.free
            if not lane.ready:
                if not lane.later:
                    continue
                start = max(start, lane.later[0][0])
            if best is None or start < first:
                first, best = start, lane
        if best is None:
            raise ValueError("the dependence graph has a cycle")
        return first, best
