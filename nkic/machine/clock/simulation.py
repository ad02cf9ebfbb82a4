"""Discrete-event simulation of streams, for time alone.

It equals the runner's event loop (`simulate/machine.py`) without values. The compiler uses it to
time an order before there is a file, and to time the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heappushpop
from typing import Any, NamedTuple

from nkic.machine.clock.exclusive import Exclusive
from nkic.machine.clock.rings import Rings
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Tables, Timing, Warmth, semaphore_ps

Queue = list[tuple[int, int]]  # (time at which a line continues, its index)


class Entry(NamedTuple):
    """An item of a stream, reduced to what affects time.

    `waits` are semaphores with counts, and `signals` semaphores, unless a subclass of
    `TimeSimulation` reads them otherwise. `follows`: it needs the result of the previous item.
    `is_rendezvous`: all cores run it together.
    """

    timing: Timing
    table: str = ""
    follows: bool = False
    is_rendezvous: bool = False
    waits: Sequence[Any] = ()
    signals: Any = ()


# The fields of an `Entry`, which a stream may also hold as a plain tuple.
Fields = tuple[Timing, str, bool, bool, Sequence[Any], Any]


@dataclass
class Line:
    """A stream and its progress."""

    index: int
    core: int
    engine: Engine
    queue: int
    entries: Iterator[Fields]
    target: Target
    tables: Tables = field(init=False)
    warmth: Warmth = field(init=False)
    entry: Fields | None = None
    free: int = 0
    triggered: int | None = None
    granted: int | None = None
    moved: int = 0  # when the data of its transfers have been moved
    done: int = 0
    is_ready: bool = False  # its item's waits were satisfied by now

    def __post_init__(self) -> None:
        self.tables, self.warmth = Tables(self.target), Warmth(self.target)
        self.is_dma = self.engine is Engine.DMA

    def next(self) -> None:
        """Advance to the next item."""
        self.entry = next(self.entries, None)
        self.is_ready = False


class TimeSimulation:
    """Runs the lines of all cores to their ends."""

    def __init__(self, lines: Sequence[Line], cores: int, semaphores: int, target: Target) -> None:
        self.lines = lines
        self.cores = cores
        self.semaphore_ps = semaphore_ps(target)
        self.tokens = [[deque[int]() for _ in range(semaphores)] for _ in range(cores)]
        self.parked: list[dict[int, Line]] = [{} for _ in range(cores)]
        self.arrived: dict[tuple[Engine, int], dict[int, tuple[Line, int]]] = {}
        self.rings = Rings(cores, {(o.core, o.engine): o for o in lines if not o.is_dma})
        self.exclusive = Exclusive(self.semaphore_ps)
        self.end = 0

    def run(self) -> int | None:
        """Return the time of the last completion in picoseconds; None in case of a deadlock."""
        for line in self.lines:
            line.next()
        queue = [(0, line.index) for line in self.lines]
        lines, advance = self.lines, self._advance
        while queue:
            now, index = heappop(queue)
            while (resume_at := advance(lines[index], now, queue)) is not None:
                now, index = heappushpop(queue, (resume_at, index))
        return None if any(line.entry is not None for line in self.lines) else self.end

    def _advance(self, line: Line, now: int, queue: Queue) -> int | None:
        """Run the stream's items until another stream comes first; return when to continue."""
        while True:
            entry = line.entry
            if entry is None:
                return None
            timing, table, follows, meets, waits, _ = entry
            start = now if now > line.free else line.free
            if not line.is_ready:
                if follows and line.done > start:
                    start = line.done
                if waits:
                    signalled = self._arrival(line, waits)
                    if signalled is None:
                        return None
                    if signalled > start:
                        start = signalled
                line.is_ready = True
            if start > now and queue and start > queue[0][0]:
                return start
            if line.is_dma:
                if timing.trigger:
                    start = self.rings.trigger(line, line.core, timing, start)
            elif timing.exclusive:
                load = line.tables.missing(table)
                start = self.exclusive.grant(line, line.core, line.engine, timing, start, load)
            if start > now and queue and start > queue[0][0]:
                return start
            if not meets:
                self._execute(line, entry, start, queue)
            elif not self._rendezvous(line, start, queue):
                return None
            now = line.free
            if queue and queue[0][0] < now:
                return now

    def _arrival(self, line: Line, waits: Sequence[Any]) -> int | None:
        """Return when the last awaited signal arrives; park the line if one is not sent yet."""
        tokens, latest = self.tokens[line.core], 0
        for semaphore, count in waits:
            available = tokens[semaphore]
            if len(available) < count:
                self.parked[line.core][semaphore] = line
                return None
            latest = max(latest, available[count - 1])
        return latest + self.semaphore_ps

    def _execute(self, line: Line, entry: Fields, start: int, queue: Queue) -> None:
        timing, table, _, _, waits, signals = entry
        hold, latency, lead, *_ = timing
        if line.is_dma:
            self.rings.enqueue(line, line.core, timing, start)
            done = line.moved + lead + latency
        else:
            if line.engine is Engine.TENSOR:
                hold = line.warmth.duration(start, timing)
            if table:
                hold += line.tables.loading(table)
            line.free = start + hold
            done = line.free + latency
            line.granted = None
        if done > line.done:
            line.done = done
            if done > self.end:
                self.end = done
        self._pass_signals(line, waits, signals, start, queue)
        line.entry = next(line.entries, None)
        line.is_ready = False

    def _pass_signals(
        self, line: Line, waits: Sequence[Any], signals: Any, start: int, queue: Queue
    ) -> None:
        """Consume the signals that an item waited for, and send its own."""
        tokens, parked = self.tokens[line.core], self.parked[line.core]
        for semaphore, count in waits:
            for _ in range(count):
                tokens[semaphore].popleft()
        for semaphore in signals:
            tokens[semaphore].append(line.done)
            waiting = parked.pop(semaphore, None)
            if waiting is not None:
                heappush(queue, (max(waiting.free, start), waiting.index))

    def _rendezvous(self, line: Line, start: int, queue: Queue) -> bool:
        """Record that the core reached a rendezvous; return whether all cores have."""
        arrivals = self.arrived.setdefault((line.engine, line.queue), {})
        arrivals[line.core] = (line, start)
        if len(arrivals) < self.cores:
            return False
        start_together = max(started for _, started in arrivals.values())
        if self.cores > 1:
            start_together += self.semaphore_ps
        if line.is_dma:
            start_together = max(start_together, *self.rings.dma_free)
        for arrived, _ in [arrivals[core] for core in sorted(arrivals)]:
            if arrived.entry is not None:
                self._execute(arrived, arrived.entry, start_together, queue)
            if arrived is not line:
                heappush(queue, (arrived.free, arrived.index))
        arrivals.clear()
        return True
