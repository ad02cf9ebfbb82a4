"""The event loop: runs the streams as their semaphores allow, in order of simulated time.

An item starts when its stream is free and its waits are satisfied; its values are computed at that
moment; it holds its engine for `busy` and signals when it completes. Items of a stream complete in
order. The transfers of all queues of a core share the DMA engines: their data move one after the
other, while their fixed latencies overlap. A queue is a ring, which accepts a transfer while
earlier ones are moving their data. Triggering a transfer occupies the triggering engine, which
takes the trigger between two items of its own when both are ready; the scalar engine also takes it
during an item.

A rendezvous of cores starts when the last core reaches it, and ends at the same time on each; so do
collectives, for all cores of all ranks of a group. Ranks share nothing else: each has its own
memories, streams and semaphores.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush, heappushpop
from math import inf
from typing import Any, NamedTuple, NoReturn, Protocol

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    source_of,
)
from nkic.base.diagnostics import Label, LimitHit, ProgramFault, make
from nkic.base.text import plural
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import Exclusive, Rings, semaphore_ps
from nkic.simulate import lost
from nkic.simulate.dynamic import Dynamic
from nkic.simulate.outcome import RunOptions, called_from, fault
from nkic.simulate.plans import Refused, UnsetRegister
from nkic.simulate.races import RaceDetector
from nkic.simulate.recorder import Recorder
from nkic.simulate.shadow import Shadow
from nkic.simulate.streams import Item, Runner, nothing, unlimited
from nkic.simulate.unwritten import Unwritten

# ------------------------------------------------------------------------------------------------
# The deadlock report: the cycle of waiting streams, and cores that wait at a rendezvous.
# Each is reported with its source line.

MAX_NOTES = 8


class _Stuck(NamedTuple):
    """A deadlocked stream: a description of what it waits for, and the streams that it needs."""

    runner: Runner
    item: Item
    what: str
    needs: tuple[int, ...]


def deadlock(
    executable: Executable, runners: Sequence[Runner], lacking: Mapping[int, Sequence[int]]
) -> ProgramFault:
    """Return the deadlock fault.

    `lacking` maps each deadlocked stream to the semaphores that were not signalled, or to none if
    it has reached a rendezvous of the cores.
    """
    stuck = {
        i: s
        for i, runner in enumerate(runners)
        if (s := _stuck(executable, runner, runners, lacking))
    }
    cycle = [stuck[index] for index in _cycle(stuck)]
    cycle += [
        stream for stream in stuck.values() if stream.item.is_rendezvous and stream not in cycle
    ]
    cycle.sort(key=_is_not_at_rendezvous)
    first = cycle[0]
    label = "stream waits for signals" if len(stuck) == 1 else "streams wait for signals"
    notes = [_sentence(executable, stream) for stream in cycle]
    diagnostic = make(
        "deadlock",
        f"{len(stuck)} {label} that never come",
        source_of(executable, _place(first)),
        labels=list(_labels(executable, cycle)),
        notes=notes[:MAX_NOTES],
    )
    return ProgramFault([diagnostic])


def _stuck(
    executable: Executable,
    runner: Runner,
    runners: Sequence[Runner],
    lacking: Mapping[int, Sequence[int]],
) -> _Stuck | None:
    if runner.index not in lacking:
        return None
    item = runner.current()
    if item is None:
        return None
    semaphores = lacking[runner.index]
    if semaphores:
        needs = [(r, s) for r in runners if (s := _signaller(r, runner.unit, semaphores))]
        description = (
            " and ".join(_named(executable, *need) for need in needs) or "a signal that never comes"
        )
        return _Stuck(runner, item, description, tuple(r.index for r, _ in needs))
    group = item.rendezvous.group if item.rendezvous is not None else None
    partners = [r for r in runners if _same_stream(r, runner, group)]
    missing = [r for r in partners if not _has_arrived(r, lacking)]
    text = "the other core" if group is None else "the other ranks of its group"
    if any(r.current() is None for r in missing) or not missing:
        text += (
            ", which reaches no further rendezvous" if group is None else ", one of which has ended"
        )
    return _Stuck(runner, item, text, tuple(r.index for r in missing))


def _signaller(runner: Runner, unit: int, semaphores: Sequence[int]) -> InstructionRecord | None:
    """Return the stream's next instruction that signals one of these semaphores, else its last."""
    if runner.unit != unit:
        return None
    signallers = [
        (index, item)
        for index, item in enumerate(runner.record.items)
        if isinstance(item, InstructionRecord) and not {*semaphores}.isdisjoint(item.signals)
    ]
    later = [item for index, item in signallers if index >= runner.next_index]
    return later[0] if later else signallers[-1][1] if signallers else None


def _named(executable: Executable, runner: Runner, item: InstructionRecord) -> str:
    """Return the name of the instruction that does not signal, with its line."""
    span = source_of(executable, item.place)
    name = item.row.name if item.row is not None else "a signal"
    return f"{name} of {runner.name}" + (f" ({span})" if span else "")


def _same_stream(one: Runner, other: Runner, group: tuple[int, ...] | None) -> bool:
    """Return whether `one` is a partner of `other` at a rendezvous, by rank or by group."""
    record, others = one.record, other.record
    partner = one.rank == other.rank if group is None else one.rank in group
    same = (record.engine, record.queue) == (others.engine, others.queue)
    return partner and same and one is not other


def _has_arrived(runner: Runner, lacking: Mapping[int, Sequence[int]]) -> bool:
    return runner.index in lacking and not lacking[runner.index]


def _cycle(stuck: Mapping[int, _Stuck]) -> list[int]:
    """Return a cycle of streams, each of which waits for the next.

    If the cause is a stream that has ended, return the path to it.
    """
    path: list[int] = []
    index = next(iter(stuck))
    while index not in path:
        path.append(index)
        next_streams = [need for need in stuck[index].needs if need in stuck]
        if not next_streams:
            return path
        index = next_streams[0]
    return path[path.index(index) :]


def _is_not_at_rendezvous(stuck: _Stuck) -> bool:
    """Sort key: streams at a rendezvous first, since they are what a kernel's author knows."""
    return not stuck.item.is_rendezvous


def _place(stuck: _Stuck) -> int:
    """Return the place of its instruction; for an empty slot, of the next one in the stream."""
    items = stuck.runner.record.items
    places = [stuck.item.record.place]
    places += [
        i.place for i in items[stuck.runner.next_index :] if isinstance(i, InstructionRecord)
    ]
    return next((place for place in places if place >= 0), -1)


def _labels(executable: Executable, cycle: Sequence[_Stuck]) -> Iterator[Label]:
    """Yield labels for the other places, and for the calls that led to the first."""
    seen = {source_of(executable, _place(cycle[0]))}
    for stuck in cycle[1:]:
        span = source_of(executable, _place(stuck))
        if span is not None and span not in seen:
            seen.add(span)
            yield Label(span, f"{stuck.runner.name} waits here")
    yield from called_from(executable, _place(cycle[0]))


def _sentence(executable: Executable, stuck: _Stuck) -> str:
    row = stuck.item.record.row
    span = source_of(executable, _place(stuck))
    instruction = ", ".join(
        str(word) for word in (row.name if row is not None else "", span) if word
    )
    at = f", at {instruction}," if instruction else ""
    return f"{stuck.runner.name}{at} waits for {stuck.what}"


# ---- invalid collectives ----------------------------------------------------------------------


def outside_group(
    executable: Executable, place: int, rank: int, group: Sequence[int], ranks: int
) -> ProgramFault:
    """Return the fault of `rank` for a collective whose group excludes it or has missing ranks."""
    if rank in group:
        text = f"the collective is for the ranks {_listed(group)}, and {ranks} are run"
        help = f"run {max(group) + 1} ranks: `nki-run --ranks`, `kernel.ranks(...)` in Python"
        return fault(executable, "collective", text, place, help=help)
    text = f"rank {rank} is in no group of this collective"
    return fault(executable, "collective", text, place, help="name every rank in replica_group")


def same_instruction(executable: Executable, arrivals: Sequence[tuple[Runner, Item]]) -> None:
    """Raise unless every rank has reached the same instruction."""
    first = {runner.core: (runner, item) for runner, item in reversed(arrivals)}
    for runner, item in arrivals:
        other, other_item = first[runner.core]
        if item.record is not other_item.record:
            name, other_name = _row_name(item), _row_name(other_item)
            text = f"rank {other.rank} reaches {other_name} here, "
            text += f"but rank {runner.rank} reaches {name}"
            error = fault(executable, "collective", text, other_item.record.place)
            span = source_of(executable, item.record.place)
            labels = [Label(span, f"rank {runner.rank} is here")] if span is not None else []
            (one,) = error.diagnostics
            raise ProgramFault([replace(one, labels=(*labels, *one.labels))])


def _row_name(item: Item) -> str:
    return item.record.row.name if item.record.row is not None else "nothing"


def _listed(group: Sequence[int]) -> str:
    return ", ".join(map(str, group)) if len(group) <= 8 else f"{group[0]} to {max(group)}"


# --------------------------------------------------------------------------------------------------

WATCH_INTERVAL = 256  # items or loop iterations between two calls of `watch`
CLOCK_CHECK_INTERVAL = 4096  # items or loop iterations between two reads of the host's clock


class Arrival(NamedTuple):
    """A core's stream that has reached a rendezvous, and when it can start."""

    runner: Runner
    item: Item
    start: int
    missing: PatternRecord | None  # the operand that reads uninitialised bytes


class Follower(Protocol):
    """What is computed beside the values of a rank: error bounds, or elements of a field."""

    def before(
        self, record: InstructionRecord, core: int, engine: Engine, dynamic: Dynamic | None, /
    ) -> Callable[[], None]:
        """Prepare for an instruction, and return a function to call after it."""

    def lose(self, record: InstructionRecord, engine: Engine, /) -> None:
        """Give up what an exchange has written."""


class Machine:
    """Runs prepared streams to their end."""

    def __init__(
        self,
        executable: Executable,
        runners: list[Runner],
        shadows: Sequence[Shadow | None],
        options: RunOptions,
        limit_ps: int | None,
        target: Target,
    ) -> None:
        self.executable = executable
        self.runners = runners
        self.unwritten = Unwritten(executable, shadows)
        self.bounds: list[Follower] = []  # by rank, if requested
        self.orders: list[RaceDetector] = []  # by rank, if races are checked
        self.recorders: list[Recorder] = []  # by rank, if a trace is requested
        self.limit_ps = limit_ps
        self.options = options
        self.cores = max(executable.cores, 1)
        self.ranks = len(shadows)
        units = self.cores * self.ranks
        self.arrived: dict[object, dict[int, Arrival]] = {}
        self.tokens: list[list[deque[int]]] = [
            [deque() for _ in range(executable.semaphores)] for _ in range(units)
        ]
        self.parked: list[dict[int, Runner]] = [{} for _ in range(units)]
        self.semaphore_ps = semaphore_ps(target)
        engines = {(r.unit, r.record.engine): r for r in runners if not r.is_dma}
        self.rings = Rings(units, engines)
        self.exclusive = Exclusive(self.semaphore_ps)
        self.end = 0
        self.timeline: list[tuple[Runner, Item, int, int]] = []
        self.iterations = 0
        self.deadline = inf
        self.counts_iterations = options.watch is not None or options.timeout_s is not None

    def run(self) -> None:
        """Run until every stream has ended. Raises ProgramFault or LimitHit."""
        queue = [(0, r.index) for r in self.runners]
        if self.options.timeout_s is not None:
            self.deadline = time.monotonic() + self.options.timeout_s
        for runner in self.runners:
            runner.on_iteration, runner.on_limit = self._count_iteration, self._iteration_limit
            runner.max_iterations = self.options.max_iterations
        index = 0
        try:
            while queue:
                now, index = heappop(queue)
                while (resume_at := self._advance(self.runners[index], now, queue)) is not None:
                    now, index = heappushpop(queue, (resume_at, index))
        except UnsetRegister as unset:
            place = self.runners[index].place
            raise fault(
                self.executable, "uninitialised-read", unset.TEXT, place, help=unset.HELP
            ) from None
        for runner in self.runners:
            # Break the reference cycles, so that everything is freed without the collector.
            runner.on_iteration, runner.on_limit = nothing, unlimited
        stuck = [r for r in self.runners if r.current() is not None]
        if stuck:
            raise self._deadlock(stuck)
        self.unwritten.finish()

    def _count_iteration(self) -> None:
        """Count an item or loop iteration, and now and then check the host's clock."""
        self.iterations += 1
        if self.iterations % WATCH_INTERVAL == 0 and self.options.watch is not None:
            self.options.watch(sum(runner.count for runner in self.runners))
        if self.iterations % CLOCK_CHECK_INTERVAL == 0 and time.monotonic() > self.deadline:
            self._time_limit()

    def _advance(self, runner: Runner, now: int, queue: list[tuple[int, int]]) -> int | None:
        """Run the stream's next items until another stream comes first; return when to continue."""
        while True:
            if self.counts_iterations:
                self._count_iteration()
            item = runner.item or runner.current()
            if item is None:
                return None
            start = now if now > runner.free else runner.free
            if not runner.is_ready:
                ready = self._ready(runner, item)
                if ready is None:
                    return None
                if ready > start:
                    start = ready
            if start > now and queue and start > queue[0][0]:
                return start
            timing = item.timing
            if timing.exclusive:
                engine, load = runner.record.engine, runner.tables.missing(item.table)
                start = self.exclusive.grant(runner, runner.unit, engine, timing, start, load)
                if start > now and queue and start > queue[0][0]:
                    return start
            if timing.trigger:
                start = self.rings.trigger(runner, runner.unit, timing, start)
                if start > now and queue and start > queue[0][0]:
                    return start
            if not item.is_rendezvous:
                self._execute(runner, item, start, queue)
            elif not self._enter_rendezvous(runner, item, start, queue):
                return None
            now = runner.free
            if queue and queue[0][0] < now:
                return now

    def _ready(self, runner: Runner, item: Item) -> int | None:
        """Return when the results that the item waits for are complete; None if a signal is
        missing.

        From then on the stream is ready: no other stream takes its signals.
        """
        ready = runner.done if item.follows else 0
        if item.waits:
            tokens = self.tokens[runner.unit]
            for semaphore, count in item.waits:
                queued = tokens[semaphore]
                if len(queued) < count:
                    self.parked[runner.unit][semaphore] = runner
                    return None
                signalled = queued[count - 1] + self.semaphore_ps
                if signalled > ready:
                    ready = signalled
        runner.is_ready = True
        return ready

    def _execute(
        self, runner: Runner, item: Item, start: int, queue: list[tuple[int, int]]
    ) -> None:
        tokens = self.tokens[runner.unit]
        for semaphore, count in item.waits:
            for _ in range(count):
                tokens[semaphore].popleft()
        if self.orders:
            self.orders[runner.rank].begin(runner, item)
        if item.step is not None and not item.is_rendezvous and self.options.values:
            if self.bounds:
                self._run_bounded(runner, item)
            else:
                self._run(runner, item)
        if self.orders:
            self.orders[runner.rank].end(runner, item)
        runner.count += item.record.row is not None
        if self.recorders:
            dma_free = self.rings.dma_free[runner.unit]
            self.recorders[runner.rank].begin(runner, item, start, dma_free)
        self._pass_time(runner, item, start)
        if self.recorders:
            self.recorders[runner.rank].end(runner, item)
        for semaphore in item.signals:
            tokens[semaphore].append(runner.done)
            waiting = self.parked[runner.unit].pop(semaphore, None)
            if waiting is not None:
                heappush(queue, (max(waiting.free, start), waiting.index))
        runner.next_index += 1
        runner.item = None
        runner.is_ready = False

    def _enter_rendezvous(
        self, runner: Runner, item: Item, start: int, queue: list[tuple[int, int]]
    ) -> bool:
        """Enter a rendezvous in this stream, and return whether all cores have reached it."""
        missing = self.unwritten.read(runner, item)
        group = item.rendezvous.group if item.rendezvous is not None else None
        if group is not None and (runner.rank not in group or max(group) >= self.ranks):
            raise outside_group(self.executable, item.record.place, runner.rank, group, self.ranks)
        stream_id = (runner.record.engine, runner.record.queue)
        arrived = self.arrived.setdefault((stream_id, runner.rank if group is None else group), {})
        arrived[runner.unit] = Arrival(runner, item, start, missing)
        if len(arrived) < self.cores * len(group or (0,)):
            return False
        arrivals = [arrival for _, arrival in sorted(arrived.items())]
        arrived.clear()
        self._exchange(arrivals, group)
        self._advance_together(arrivals, runner, queue)
        return True

    def _exchange(self, arrivals: list[Arrival], group: tuple[int, ...] | None) -> None:
        """Exchange data: each core offers its own, then each accepts its part."""
        if group is not None:
            same_instruction(self.executable, [(a.runner, a.item) for a in arrivals])
        offers = {}
        for runner, item, *_ in arrivals:
            if item.dynamic is not None:
                item.dynamic.begin()
            for tile, window in item.windows:
                tile.window = window
            offers[runner.unit] = item.rendezvous.offer() if item.rendezvous is not None else None
        for runner, item, *_ in arrivals:
            first, core = runner.rank * self.cores, runner.core
            if group is None:
                contributions = {c: offers[first + c] for c in range(self.cores)}
            else:
                contributions = {rank: offers[rank * self.cores + core] for rank in group}
            self._accept(runner, item, contributions)
            if self.bounds:
                self.bounds[runner.rank].lose(item.record, runner.record.engine)
        if any(a.missing is not None for a in arrivals):
            self.unwritten.exchange([(a.runner, a.item, a.missing) for a in arrivals])

    def _accept(self, runner: Runner, item: Item, contributions: Mapping[int, Any]) -> None:
        written = None
        try:
            if item.rendezvous is not None:
                written = item.rendezvous.accept(contributions)
        except Refused as refused:
            text = f"rank {runner.rank}: {refused}"
            raise fault(self.executable, "collective", text, item.record.place) from None
        if item.dynamic is not None:
            item.dynamic.end()
        if written is None:
            self.unwritten.note(runner, item)
        else:
            self.unwritten.note_part(runner, item, written)
        for note in item.authors:
            note()

    def _advance_together(
        self, arrivals: list[Arrival], last: Runner, queue: list[tuple[int, int]]
    ) -> None:
        """Advance all participants together."""
        start = max(arrival.start for arrival in arrivals)
        for rank, orders in enumerate(self.orders):
            participants = [(a.runner, a.item) for a in arrivals if a.runner.rank == rank]
            if participants:
                orders.meet(participants)
        for rank, recorder in enumerate(self.recorders):
            participants = [(a.runner, a.item) for a in arrivals if a.runner.rank == rank]
            if participants:
                recorder.meet(participants)
        if len(arrivals) > 1:
            start += self.semaphore_ps
        if last.is_dma:
            start = max(start, *(self.rings.dma_free[a.runner.unit] for a in arrivals))
        for arrival in arrivals:
            self._execute(arrival.runner, arrival.item, start, queue)
            if arrival.runner is not last:
                heappush(queue, (arrival.runner.free, arrival.runner.index))

    def _run_bounded(self, runner: Runner, item: Item) -> None:
        """Compute an item's values and their error bounds."""
        bounds, record = self.bounds[runner.rank], item.record
        after = bounds.before(record, runner.core, runner.record.engine, item.dynamic)
        self._run(runner, item)
        after()

    def _run(self, runner: Runner, item: Item) -> None:
        """Compute an item's values."""
        missing = self.unwritten.read(runner, item)
        if missing is not None:
            self.unwritten.prepare(runner, item)
        for tile, window in item.windows:
            tile.window = window
        if item.step is not None:
            item.step()
        if missing is not None:
            self.unwritten.follow(runner, item, missing)
            runner.state.remarks.drop(lost.SLUGS)  # on elements without a value
        else:
            self.unwritten.note(runner, item)
        for note in item.authors:
            note()
        if (remarks := runner.state.remarks).fresh:
            remarks.settle(self.executable, item.record.place)

    def _pass_time(self, runner: Runner, item: Item, start: int) -> None:
        """Advance the stream's times over `item`, which starts at `start`."""
        timing = item.timing
        hold = timing.hold
        if runner.is_dma:
            self.rings.enqueue(runner, runner.unit, timing, start)
            runner.bytes += item.bytes
            start, end = runner.moved - hold, runner.moved + timing.start + timing.latency
            done = end
        else:
            if runner.is_tensor:
                hold = runner.warmth.duration(start, timing)
            if item.table:
                hold += runner.tables.loading(item.table)
            runner.free = end = start + hold
            runner.granted = None
            done = end + timing.latency
        runner.busy += hold
        if done > runner.done:
            runner.done = done
        if len(self.timeline) < self.options.timeline and item.record.row is not None:
            self.timeline.append((runner, item, start, end))
        if done > self.end:
            self.end = done
            if self.limit_ps is not None and self.end > self.limit_ps:
                self._cycle_limit(item)

    def _cycle_limit(self, item: Item) -> NoReturn:
        message = (
            f"the program runs longer than {self.options.max_cycles:,} cycles (`--limit cycles`)"
        )
        span = source_of(self.executable, item.record.place)
        raise LimitHit([make("cycle-limit", message, span, help="raise the limit, or drop it")])

    def _time_limit(self) -> NoReturn:
        message = f"the simulation took longer than {self.options.timeout_s:g} s (`--limit time`)"
        loops = [(r.iterations[-1], r.loops[-1].record) for r in self.runners if r.loops]
        span, notes = None, []
        if loops:
            iterations, loop = max(loops, key=lambda pair: pair[0])
            span = source_of(self.executable, loop.place)
            notes = [f"this loop had run {plural(iterations, 'time')}"]
        help = "raise the limit, or drop it"
        raise LimitHit([make("time-limit", message, span, notes=notes, help=help)])

    def _iteration_limit(self, loop: LoopRecord, iterations: int) -> NoReturn:
        """Raise LimitHit for a loop with a run-time bound that does not end."""
        state = "its register is not 0 yet" if loop.condition is not None else "has not ended"
        times = plural(iterations, "time")
        message = f"this loop has run {times} and {state}: more than `--limit iterations` allows"
        diagnostic = make(
            "loop-limit",
            message,
            source_of(self.executable, loop.place),
            labels=called_from(self.executable, loop.place),
            help="let the loop's body change its condition or bound, or raise the limit",
        )
        raise LimitHit([diagnostic])

    def _deadlock(self, stuck: list[Runner]) -> ProgramFault:
        """Return the deadlock error, with the waits of the instructions that cannot start."""
        lacking = {}
        for runner in stuck:
            item, tokens = runner.current(), self.tokens[runner.unit]
            waits = item.waits if item is not None else ()
            lacking[runner.index] = [s for s, count in waits if len(tokens[s]) < count]
        return deadlock(self.executable, self.runners, lacking)
