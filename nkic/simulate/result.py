"""What a run records, the results that it gives, and replays of the record."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.events import Cause, Change, Event, Trace
from nkic.artifact.records import Executable, InstructionRecord
from nkic.base.diagnostics import Diagnostic
from nkic.machine.targets import Buffer, Engine, Target
from nkic.machine.timing import overlaps_commands, semaphore_ps
from nkic.simulate.machine import Machine, Rank
from nkic.simulate.outcome import Printed, RunOptions
from nkic.simulate.plans import EngineState, Registers, Rendezvous
from nkic.simulate.streams import Hook, Item, Runner

# ---- The record: every execution of an item, with the cause of its wait -------------------------


class _Signal(NamedTuple):
    """A signal. `last` is the event of the stream that was last to complete when `event` signalled.

    Items of a stream complete in order.
    """

    time: int
    event: int
    last: int


class _Bound(NamedTuple):
    """A time before which an item cannot start, and its cause."""

    time: int
    cause: Cause
    before: int


_NOTHING = _Bound(0, Cause.START, -1)


class Recorder(Hook):
    """The events of one rank; at most `limit` are kept."""

    def __init__(
        self, executable: Executable, target: Target, runners: Sequence[Runner], limit: int
    ) -> None:
        self.executable, self.target = executable, target
        self.semaphore_ps = semaphore_ps(target)
        self.runners, self.limit = runners, limit
        self.events: list[Event] = []
        self.items: list[Item] = []  # of each event
        self.complete = True
        self.first = runners[0].index if runners else 0
        self._previous = [-1] * len(runners)
        self._holders: dict[tuple[int, Engine], _Bound] = {}  # of engines, including triggers
        self._accesses: dict[tuple[int, Buffer], _Bound] = {}  # the last exclusive ones
        self._commands: dict[tuple[int, Engine], _Bound] = {}  # the last triggers of engines
        self._last = [-1] * len(runners)  # the last event to complete
        # by unit: the last user of the DMA engines, and when they can take another transfer
        self._pool: dict[int, tuple[int, int]] = {}
        self._tokens: dict[tuple[int, int], deque[_Signal]] = defaultdict(deque)
        self._last_arrival: _Bound | None = None
        self._open: tuple[int, int, _Bound, int, tuple[int, ...]] = (0, 0, _NOTHING, -1, ())

    def meet(self, runners: Sequence[Runner]) -> None:
        """Start a rendezvous: the last one to arrive determines the start."""
        if self.complete:
            bounds = [self._bound(runner, runner.item)[0] for runner in runners]
            self._last_arrival = max(bounds, key=lambda bound: bound.time)

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        if not self.complete:
            return
        bound, tokens = self._bound(runner, item)
        for semaphore, count in item.waits:
            for _ in range(count):
                self._tokens[runner.unit, semaphore].popleft()
        if item.is_rendezvous and self._last_arrival is not None and start > bound.time:
            bound = _Bound(start, Cause.RENDEZVOUS, self._last_arrival.before)
        elif start > bound.time:
            bound = _Bound(start, Cause.OTHER, bound.before)
        mover = self._mover(runner, item, start) if runner.is_dma else -1
        self._open = (runner.free, start, bound, mover, tokens)

    def _mover(self, runner: Runner, item: Item, start: int) -> int:
        """Return the event whose data move before those of a transfer triggered at `start`."""
        mover, begins = -1, start
        if item.timing.pool and (last := self._pool.get(runner.unit, (-1, 0)))[1] > start:
            mover, begins = last
        return self._previous[runner.index - self.first] if runner.moved > begins else mover

    def _bound(self, runner: Runner, item: Item) -> tuple[_Bound, tuple[int, ...]]:
        """Return what keeps the item from starting earlier, and the events that it waits for."""
        number = runner.index - self.first
        bound = self._holder(runner, number)
        if item.follows and runner.done > bound.time:
            bound = _Bound(runner.done, Cause.RESULT, self._last[number])
        if item.timing.trigger:
            holders = self._commands if overlaps_commands(item.timing.by) else self._holders
            holder = holders.get((runner.unit, item.timing.by), _NOTHING)
            if holder.time > bound.time:
                bound = holder._replace(cause=Cause.TRIGGER)
        for buffer in item.timing.exclusive:
            access = self._accesses.get((runner.unit, buffer), _NOTHING)
            if access.time > bound.time and not self._is_own(access, number):
                bound = access
        tokens = []
        for semaphore, count in item.waits:
            signals = self._tokens[runner.unit, semaphore]
            tokens += [signals[i].event for i in range(count)]
            signal = signals[count - 1]
            if (time := signal.time + self.semaphore_ps) > bound.time:
                bound = _Bound(time, Cause.SEMAPHORE, signal.last)
        return bound, tuple(tokens)

    def _is_own(self, access: _Bound, number: int) -> bool:
        """Whether the stream itself made the access: an engine does not wait for its own."""
        return self.events[access.before].stream == number

    def _holder(self, runner: Runner, number: int) -> _Bound:
        if not runner.is_dma:
            return self._holders.get((runner.unit, runner.record.engine), _NOTHING)
        previous = self._previous[number]
        return _Bound(runner.free, Cause.TRIGGER, previous) if previous >= 0 else _NOTHING

    def end(self, runner: Runner, item: Item, start: int) -> None:
        self.complete = self.complete and len(self.events) < self.limit
        if not self.complete:
            return
        number, index = runner.index - self.first, len(self.events)
        idle, issued, bound, mover, tokens = self._open
        hold, latency, lead, pool, trigger, by, *_ = item.timing
        free = runner.moved if runner.is_dma else runner.free
        start = free - hold if runner.is_dma else issued
        done = free + lead + latency
        table = free - start - hold if item.table else 0
        event = Event(
            *(number, item.record, idle, bound.time, start, free, done),
            *(bound.cause, bound.before, mover, pool, table),
            *(item.bytes, tokens, tuple(runner.iterations), trigger, by),
            self._overlap(runner, item, bound.time),
        )
        self.events.append(event)
        self.items.append(item)
        self._note(runner, item, number, index)

    def _overlap(self, runner: Runner, item: Item, triggered: int) -> int:
        """Return how long the triggering engine continues its own work during the trigger."""
        busy_until = self._holders.get((runner.unit, item.timing.by), _NOTHING).time
        return max(0, min(item.timing.trigger, busy_until - triggered))

    def _note(self, runner: Runner, item: Item, number: int, index: int) -> None:
        """Record the event as the latest of its stream, engine, pool and semaphores."""
        event = self.events[index]
        self._previous[number] = index
        if event.done >= runner.done:
            self._last[number] = index
        if event.pool:
            _, shared_from = self._pool.get(runner.unit, (-1, 0))
            self._pool[runner.unit] = index, max(self._open[1], shared_from) + event.pool
        if not runner.is_dma:
            engine = runner.unit, runner.record.engine
            self._holders[engine] = _Bound(runner.free, Cause.ENGINE, index)
        if event.trigger:
            by, until = (runner.unit, event.triggered_by), event.ready + event.trigger
            self._commands[by] = _Bound(until, Cause.ENGINE, index)
            if until >= self._holders.get(by, _NOTHING).time:
                self._holders[by] = self._commands[by]
        for buffer in item.timing.exclusive:
            until = event.done + self.semaphore_ps
            self._accesses[runner.unit, buffer] = _Bound(until, Cause.ACCESS, index)
        for semaphore in item.signals:
            signal = _Signal(runner.done, index, self._last[number])
            self._tokens[runner.unit, semaphore].append(signal)

    def trace(self, end: int) -> Trace:
        streams = tuple(runner.record for runner in self.runners)
        return Trace(self.executable, self.target, streams, tuple(self.events), end, self.complete)


# ---- Replays of a recorded run without values, for its time alone -------------------------------
# A replay uses the same event loop and the same rules of timing. Only the durations of items or
# the dependences between them are changed, so the result is computed rather than estimated.

UNCHANGED = Change()


@dataclass(frozen=True)
class Recorded:
    """A recorded run of one rank, which can be replayed under changed conditions.

    `items` are those of its events, without their steps. `can_repeat` tells that every event was
    kept, and that no other rank took part.
    """

    trace: Trace
    items: Sequence[Item]
    can_repeat: bool

    def again(self, change: Change = UNCHANGED) -> int:
        executable = self.trace.executable
        rank, options = Rank([*self._runners(change)]), RunOptions(check_init=False)
        machine = Machine(executable, [rank], options, self.trace.target)
        if change.wires is not None:
            machine.tokens = [defaultdict(deque) for _ in machine.tokens]  # type: ignore[misc]
        return machine.run()

    def _runners(self, change: Change) -> list[_ReplayedStream]:
        executable = self.trace.executable
        target, cores = self.trace.target, max(1, executable.cores)
        runners = [
            _ReplayedStream(i, stream, [], EngineState(Registers([]), stream.core), target, cores)
            for i, stream in enumerate(change.streams or self.trace.streams)
        ]
        waits, signals = _dependences(change.wires, len(self.items))
        for number, (event, item) in enumerate(zip(self.trace.events, self.items, strict=True)):
            timing = item.timing
            if change.retimed is not None:
                timing = change.retimed(number, event, timing)
            changed = item
            if timing is not item.timing or change.wires is not None or not change.tables:
                changed = _without_step(item)
                changed.timing = timing
            if not change.tables:
                changed.table = ""
            if change.wires is not None:
                changed.waits, changed.signals = tuple(waits[number]), tuple(signals[number])
            runners[change.moved.get(number, event.stream)].items.append(changed)
        return runners


def recorded(recorder: Recorder, end: int) -> Recorded:
    """Return what a recorder has kept, without references to the memory of the run."""
    empty = {id(item): _without_step(item) for item in recorder.items}
    groups = (item.rendezvous.group for item in recorder.items if item.rendezvous is not None)
    alone = not any(group is not None for group in groups)
    items = [empty[id(item)] for item in recorder.items]
    return Recorded(recorder.trace(end), items, recorder.complete and alone)


class _ReplayedStream(Runner):
    """A stream of items in the order of execution, with loops unrolled."""

    __slots__ = ()

    def next(self) -> Any:
        done = self.next_index >= len(self.items)
        self.item = item = None if done else self.items[self.next_index]
        return item


def _without_step(item: Item) -> Item:
    copy = Item(item.record, None, item.timing, item.bytes)
    copy.follows = item.follows
    copy.table = item.table
    if item.is_rendezvous:
        copy.is_rendezvous = True
        copy.rendezvous = Rendezvous(lambda: None, lambda contributions: None)
    return copy


def _dependences(
    wires: Sequence[tuple[int, int]] | None, count: int
) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
    """Return the waits and the signals of each event, with one semaphore for each pair."""
    waits: list[list[tuple[int, int]]] = [[] for _ in range(count if wires is not None else 0)]
    signals: list[list[int]] = [[] for _ in range(count if wires is not None else 0)]
    for number, (signaller, waiter) in enumerate(wires or ()):
        signals[signaller].append(number)
        waits[waiter].append((number, 1))
    return waits, signals


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EngineUse:
    """The work of an engine: time busy, and instructions executed."""

    busy_ns: float
    instructions: int


class Busy(NamedTuple):
    """The time in which an instruction held its engine or a transfer was in flight, in picoseconds.

    `stream` is named like "core0.vector" or "core0.dma3".
    """

    stream: str
    record: InstructionRecord
    start: int
    end: int


@dataclass(frozen=True)
class Result:
    """The result of a run. `outputs` are in the storage type of their element types, by name.

    The storage type of bfloat16 is uint16. `time_ns` is simulated time from the first issue to the
    last completion; `cycles` is the same at the target's base clock. `printed` is what the program
    printed, in order, up to a limit; `prints_left_out` counts the prints after it. `engines` is by
    core and engine, as "core0.vector". `bounds`, if requested, has each output element's maximum
    distance from exact arithmetic, and `uncovered` the instructions that left something unbounded,
    by name and place. `recorded`, if requested, is a record of the run that can tell how long the
    run would have taken under different conditions. `timeline` holds the times of the first
    instructions to start, if requested. `remarks` are warnings of differences on a device and of
    uninitialised outputs; `base.levels` says which of them are errors.
    """

    outputs: Mapping[str, NDArray[np.generic]]
    time_ns: float
    cycles: int
    engines: Mapping[str, EngineUse]
    dma_bytes: int
    instructions: int
    printed: tuple[Printed, ...] = ()
    prints_left_out: int = 0
    timeline: tuple[Busy, ...] = ()
    bounds: Mapping[str, NDArray[np.float64]] | None = None
    uncovered: Mapping[tuple[str, int], int] = field(default_factory=dict)
    remarks: tuple[Diagnostic, ...] = ()
    recorded: Recorded | None = None
