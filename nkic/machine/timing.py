"""Instruction timing derived from cost formulas, shared by the scheduler and the runner.

An instruction is issued, occupies its stream for `hold`, and its result is available `latency`
later. A transfer is triggered by an engine, which is busy for `trigger`. Its first byte moves
`start` after the trigger. It then takes `pool` of the combined time of the core's DMA engines, so
that a transfer that uses few of them leaves capacity for others. Queues are rings: a transfer may
be triggered while earlier transfers of its queue move their data; data move in queue order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush, heappushpop
from typing import Any, NamedTuple

from nkic.machine.costs import dma_trigger
from nkic.machine.operands import AttributeKind, Facts, Row
from nkic.machine.operators import ACTIVATIONS
from nkic.machine.targets import PARTITIONS, Buffer, Engine, Target


class Timing(NamedTuple):
    """Times in picoseconds. `by` is the engine that triggers a transfer; `exclusive` holds the
    memories that other engines may not access at the same time. On the tensor engine, `cold` is
    `hold` while it is cold, and `use` the share of its rows at work.
    """

    hold: int
    latency: int
    start: int = 0
    pool: int = 0
    trigger: int = 0
    by: Engine = Engine.DMA
    exclusive: tuple[Buffer, ...] = ()
    cold: int = 0
    use: float = 1.0


def timing(row: Row, facts: Facts, engine: Engine, queue: int = 0) -> Timing:
    """Return the timing of one instruction on `engine`, or of a transfer on DMA queue `queue`."""
    cost, target = row.cost(facts), facts.target
    latency = _ps(cost.latency_ns)
    if engine is not Engine.DMA:
        hold = round(cost.interval * 1_000_000 / target.clock_mhz[engine])
        cold = round(cost.cold_interval * 1_000_000 / target.clock_mhz[engine])
        # the memories that it accesses, and that the target lets few engines share
        accessed = {tile.buffer for tile in facts.tiles.values()}
        rules = (Buffer.SBUF, target.sbuf_exclusive), (Buffer.PSUM, target.psum_exclusive)
        exclusive = tuple(b for b, engines in rules if engine in engines and b in accessed)
        use = 1.0
        if engine is Engine.TENSOR:  # its operands have a partition for each row at work
            rows = (tile.partitions for name, tile in facts.tiles.items() if name != "dst")
            use = max(rows, default=PARTITIONS) / PARTITIONS
        return Timing(hold, latency, exclusive=exclusive, cold=cold, use=use)
    busy = _ps(cost.busy_ns)
    share = busy * (cost.dma_engines or target.dma_engines) // target.dma_engines
    if row.is_rendezvous:  # a rendezvous of cores has prepared descriptors and occupies no engine
        return Timing(busy, latency, _ps(target.figures["dma.start_prepared_ns"]), share)
    trigger = dma_trigger(facts, target.queue_engines[queue % target.dma_queues])
    start, trigger_ps = _ps(trigger.start_ns), _ps(trigger.busy_ns)
    return Timing(busy, latency, start, share, trigger_ps, trigger.engine)


def _ps(ns: float) -> int:
    return round(ns * 1000)


def overlaps_commands(engine: Engine) -> bool:
    """Return whether `engine` can command descriptor generation while an earlier instruction runs.

    Source: Trainium2 architecture guide, descriptor generation engine (documented for the scalar
    engine, whose next instruction comes after the command).
    """
    return engine is Engine.SCALAR


def semaphore_ps(target: Target) -> int:
    return _ps(target.figures["issue.semaphore_ns"])


class Tables:
    """The activation table loaded in a core's scalar engine; initially none."""

    def __init__(self, target: Target) -> None:
        self.held = ""
        self.load = _ps(target.figures["scalar.table_ns"])

    def missing(self, table: str) -> int:
        return 0 if table == self.held or not table else self.load

    def loading(self, table: str) -> int:
        if load := self.missing(table):
            self.held = table
        return load


class Warmth:
    """The warm-up state of a core's tensor engine.

    The engine starts at a fraction of its rate, and reaches the full rate after some time of use.
    It is cold again after some time (a window) without use, or in which it was used too little:
    for too short a time, or by products over few rows. That rows count is implied: the profiler's
    guide speaks of utilisation, and published products over 1 and 64 rows take twice the time of
    those over 128.
    """

    def __init__(self, target: Target) -> None:
        self.up = _ps(target.figures["tensor.warm_up_ns"])
        self.down = _ps(target.figures["tensor.cool_down_ns"])
        self.least = target.figures["tensor.least_use"]
        self.since = self.end = self.window = -self.down
        self.used = 0.0  # in the present window

    def duration(self, start: int, timing: Timing) -> int:
        hold, cold = timing.hold, timing.cold
        if not self.up:
            return hold
        if start - self.end >= self.down:
            self.since = self.window = start
            self.used = 0.0
        elif start - self.window >= self.down:
            if self.used <= self.least * (start - self.window):
                self.since = start
            self.window, self.used = start, 0.0
        cold_time = min(max(0, self.since + self.up - start), cold)
        duration = hold if not cold_time else cold_time + hold - cold_time * hold // cold
        self.used += duration * timing.use
        self.end = start + duration
        return duration


def activation_table(row: Row, attributes: tuple[Any, ...], engine: Engine) -> str:
    """Return the activation table that an instruction needs, or an empty string.

    Functions of one family share a table, and plain functions are in every table
    (`machine/operators`).
    """
    if engine is not Engine.SCALAR:
        return ""
    functions = [
        value
        for rule, value in zip(row.attributes, attributes, strict=True)
        if rule.kind is AttributeKind.ACTIVATION
    ]
    return ACTIVATIONS[functions[0]].table if functions else ""


# ---- Accesses to a memory that two engines of a core may not make at the same time --------------
# Such instructions must be serialized, which the vendor's compiler sees to (Trainium/Inferentia2
# architecture guide, memory hierarchy). In which order is not published. Here engines access the
# memory in the order in which their instructions are ready, and an instruction starts when the
# other engine's access is complete and a semaphore has signalled it (assumed).


class Exclusive:
    """The last access to each memory of each core, granted or made."""

    def __init__(self, signal_ps: int) -> None:
        self.signal_ps = signal_ps
        self.last: dict[tuple[int, Buffer], tuple[Engine, int]] = {}  # its engine and its end

    def grant(self, line: Line, timing: Timing, ready: int, load: int) -> int:
        """Return when an item that is `ready` may start, in picoseconds. Its accesses are granted
        once; `load` is the time that the engine needs for an activation table.
        """
        if line.granted is None:
            start = ready
            for buffer in timing.exclusive:
                last = self.last.get((line.unit, buffer))
                if last is not None and last[0] is not line.engine:
                    start = max(start, last[1] + self.signal_ps)
            line.granted = start
            end = start + load + timing.hold + timing.latency
            for buffer in timing.exclusive:
                self.last[line.unit, buffer] = line.engine, end
        return max(ready, line.granted)


# ---- Timing of DMA queues: when transfers are triggered and when their data move ----------------

Key = tuple[int, Engine]  # a core, and one of its engines


class _Commander:
    """An engine of a core that triggers transfers, and its stream, if it has one."""

    __slots__ = ("held", "overlaps", "stream", "until")

    def __init__(self, engine: Engine, stream: Line | None) -> None:
        self.stream = stream
        self.overlaps = overlaps_commands(engine)
        self.until = 0  # when it ends its last trigger
        self.held = 0  # time that it was busy only with triggers


class Rings:
    """The queues of all cores. `engines` are the engine streams, for engines that have one."""

    def __init__(self, cores: int, engines: Mapping[Key, Line]) -> None:
        self.dma_free = [0] * cores  # when the DMA engines can take another transfer
        self.commanders = [
            {engine: _Commander(engine, engines.get((core, engine))) for engine in Engine}
            for core in range(cores)
        ]

    @property
    def held(self) -> dict[Key, int]:
        """The time that engines were busy only with triggers."""
        return {
            (core, engine): commander.held
            for core, commanders in enumerate(self.commanders)
            for engine, commander in commanders.items()
            if commander.held
        }

    def trigger(self, queue: Line, timing: Timing, start: int) -> int:
        """Return when a transfer that could start at `start` is triggered.

        Engines handle triggers in the order in which transfers become ready, busy with each.
        """
        if queue.triggered is None:
            by, trigger = self.commanders[queue.unit][timing.by], timing.trigger
            free, stream = by.until, by.stream
            if stream is not None and not by.overlaps and stream.free > free:
                free = stream.free
            at = queue.triggered = start if start > free else free
            until = by.until = at + trigger
            if stream is not None and stream.free > at:
                trigger = max(0, until - stream.free)
            if stream is not None and until > stream.free:
                stream.free = until
            by.held += trigger
        return queue.triggered

    def enqueue(self, queue: Line, timing: Timing, start: int) -> None:
        """Add a transfer to its ring at `start`; the ring can then take another one.

        Its data move when the core's DMA engines are available, after the data of earlier transfers
        in the ring.
        """
        queue.triggered = None
        queue.free = start + timing.trigger
        if timing.pool:
            core = queue.unit
            if self.dma_free[core] > start:
                start = self.dma_free[core]
            self.dma_free[core] = start + timing.pool
        queue.moved = (start if start > queue.moved else queue.moved) + timing.hold


# ---- The event loop: runs the streams of all cores in order, as far as their waits allow --------
# There is one, in order of time: the compiler runs it to time an order before there is a file
# (`compiler.schedule`) and to time the file (`artifact.pace`), and the runner, with values and
# whatever else a run is asked for (`simulate.machine`). What differs is chosen when a loop is
# made: what a wait is, and what is done before and after an item's time has passed.
#
# An item starts when its stream is free and its waits are satisfied; it holds its engine for
# `hold` and signals when it completes. Items of a stream complete in order. The transfers of all
# queues of a core share the DMA engines: their data move one after the other, while their fixed
# latencies overlap. A queue is a ring, which accepts a transfer while earlier ones are moving
# their data. Triggering a transfer occupies the triggering engine, which takes the trigger between
# two items of its own when both are ready; the scalar engine also takes it during an item.
#
# A rendezvous of cores starts when the last core reaches it, and ends at the same time on each.

Queue = list[tuple[int, int]]  # (time at which a stream continues, its index)


class Entry(NamedTuple):
    """An item of a stream, reduced to what affects time.

    `waits` are semaphores with counts, and `signals` semaphores, unless a loop reads them
    otherwise. `follows`: it needs the result of the previous item, so the engine stalls until that
    is complete. `table` is the activation table that the scalar engine must hold.
    `is_rendezvous`: all cores run it together.
    """

    timing: Timing
    table: str = ""
    follows: bool = False
    is_rendezvous: bool = False
    waits: Sequence[Any] = ()
    signals: Any = ()


class Line:
    """A stream and its progress. `unit` is its core's index over all ranks.

    `items` yields entries, or what has their fields; `item` is the next one, once it is found.
    """

    __slots__ = (
        *("busy", "done", "engine", "free", "granted", "index", "is_dma", "is_ready"),
        *("is_tensor", "item", "items", "moved", "queue", "tables", "triggered", "unit", "warmth"),
    )

    def __init__(
        self, index: int, unit: int, engine: Engine, queue: int, items: Any, target: Target
    ) -> None:
        self.index, self.unit, self.engine, self.queue = index, unit, engine, queue
        self.items = items
        self.is_dma, self.is_tensor = engine is Engine.DMA, engine is Engine.TENSOR
        self.tables, self.warmth = Tables(target), Warmth(target)
        self.item: Any = None
        self.is_ready = False  # whether all that the next item waits for has been signalled
        self.free = 0  # when the next item may be issued
        self.triggered: int | None = None  # when its next transfer is triggered, once it is ready
        self.granted: int | None = None  # when it may access memory, once it is ready
        self.moved = 0  # when the data of its transfers have moved
        self.done = 0  # when the last issued item is complete
        self.busy = 0

    def next(self) -> Any:
        self.item = item = next(self.items, None)
        return item


Call = Callable[[Any, Any, int], None]  # of a stream, its item, and the item's start


class EventLoop:
    """Runs the lines of all cores to their ends.

    `before` and `after` are called before and after the time of an item passes.
    """

    before: Call | None = None
    after: Call | None = None

    def __init__(self, lines: Sequence[Any], units: int, semaphores: int, target: Target) -> None:
        self.lines = lines
        self.units = units
        self.semaphore_ps = semaphore_ps(target)
        self.tokens = [[deque[int]() for _ in range(semaphores)] for _ in range(units)]
        self.parked: list[dict[int, Any]] = [{} for _ in range(units)]
        # by place of meeting, then core: the stream, and when it could start
        self.arrived: dict[object, dict[int, tuple[Any, int]]] = {}
        self.rings = Rings(units, {(o.unit, o.engine): o for o in lines if not o.is_dma})
        self.exclusive = Exclusive(self.semaphore_ps)
        self.end = 0

    def run(self) -> int | None:
        """Return the time of the last completion in picoseconds; None in case of a deadlock."""
        queue = [(0, line.index) for line in self.lines]
        lines, advance = self.lines, self._advance
        while queue:
            now, index = heappop(queue)
            while (resume_at := advance(lines[index], now, queue)) is not None:
                now, index = heappushpop(queue, (resume_at, index))
        return None if any(line.item is not None for line in lines) else self.end

    def _advance(self, line: Any, now: int, queue: Queue) -> int | None:
        """Run the stream's items until another stream comes first; return when to continue."""
        while True:
            item = line.item or line.next()
            if item is None:
                return None
            timing = item.timing
            start = now if now > line.free else line.free
            if not line.is_ready:
                if item.follows and line.done > start:
                    start = line.done
                if item.waits:
                    signalled = self._arrival(line, item.waits)
                    if signalled is None:
                        return None
                    if signalled > start:
                        start = signalled
                line.is_ready = True  # from now on no other stream takes its signals
            if start > now and queue and start > queue[0][0]:
                return start
            if line.is_dma:
                if timing.trigger:
                    start = self.rings.trigger(line, timing, start)
            elif timing.exclusive:
                load = line.tables.missing(item.table)
                start = self.exclusive.grant(line, timing, start, load)
            if start > now and queue and start > queue[0][0]:
                return start
            if not item.is_rendezvous:
                self._execute(line, item, start, queue)
            elif not self._reach(line, item, start, queue):
                return None
            now = line.free
            if queue and queue[0][0] < now:
                return now

    def _arrival(self, line: Any, waits: Sequence[Any]) -> int | None:
        """Return when the last awaited signal arrives; park the line if one is not sent yet."""
        tokens, latest = self.tokens[line.unit], 0
        for semaphore, count in waits:
            available = tokens[semaphore]
            if len(available) < count:
                self.parked[line.unit][semaphore] = line
                return None
            if available[count - 1] > latest:
                latest = available[count - 1]
        return latest + self.semaphore_ps

    def _execute(self, line: Any, item: Any, start: int, queue: Queue) -> None:
        if self.before is not None:
            self.before(line, item, start)
        timing = item.timing
        hold, latency, lead, *_ = timing
        if line.is_dma:
            self.rings.enqueue(line, timing, start)
            done = line.moved + lead + latency
        else:
            if line.is_tensor:
                hold = line.warmth.duration(start, timing)
            if item.table:
                hold += line.tables.loading(item.table)
            line.free = start + hold
            done = line.free + latency
            line.granted = None
        line.busy += hold
        if done > line.done:
            line.done = done
            if done > self.end:
                self.end = done
        if self.after is not None:
            self.after(line, item, start)
        self._pass_signals(line, item, start, queue)
        line.item = None
        line.is_ready = False

    def _pass_signals(self, line: Any, item: Any, start: int, queue: Queue) -> None:
        """Consume the signals that an item waited for, and send its own."""
        tokens, parked = self.tokens[line.unit], self.parked[line.unit]
        for semaphore, count in item.waits:
            for _ in range(count):
                tokens[semaphore].popleft()
        for semaphore in item.signals:
            tokens[semaphore].append(line.done)
            waiting = parked.pop(semaphore, None)
            if waiting is not None:
                heappush(queue, (max(waiting.free, start), waiting.index))

    def _reach(self, line: Any, item: Any, start: int, queue: Queue) -> bool:
        """Let a stream reach a rendezvous, and return whether all that take part have."""
        place, count = self._meeting(line, item)
        arrived = self.arrived.setdefault(place, {})
        arrived[line.unit] = line, start
        if len(arrived) < count:
            return False
        lines = [arrived[unit][0] for unit in sorted(arrived)]
        start = max(begins for _, begins in arrived.values())
        arrived.clear()
        self._exchange(lines)
        if len(lines) > 1:
            start += self.semaphore_ps
        if line.is_dma:
            start = max(start, *(self.rings.dma_free[one.unit] for one in lines))
        for one in lines:
            self._execute(one, one.item, start, queue)
            if one is not line:
                heappush(queue, (one.free, one.index))
        return True

    def _meeting(self, line: Any, item: Any) -> tuple[object, int]:
        """Return where a stream meets others for an item, and how many they are."""
        return (line.engine, line.queue), self.units

    def _exchange(self, lines: Sequence[Any]) -> None:
        """Exchange data: here there are none."""
