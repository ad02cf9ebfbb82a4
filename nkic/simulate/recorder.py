"""Records every execution of an item, with the cause of its wait."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from nkic.artifact.events import Cause, Event, Trace
from nkic.artifact.records import Executable
from nkic.machine.targets import Buffer, Engine, Target
from nkic.machine.timing import overlaps_commands, semaphore_ps
from nkic.simulate.streams import Hook, Item, Runner


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
