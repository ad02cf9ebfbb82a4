"""The time that a program takes, without its values: the compiler's estimate.

It passes time as the runner's event loop does (`simulate/machine.py`), so that both say the same of
a program in which no value decides what is run. A loop that a register ends counts as one turn; a
program of more than MOST items is not walked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Tables, Timing, Warmth, activation_table, semaphore_ps
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, StreamRecord
from nkic.pace.clock import Clock

MOST = 2_000_000  # items, turns of loops counted


class _Entry(NamedTuple):
    """An item of a stream, for its time alone."""

    record: InstructionRecord
    timing: Timing
    table: str
    follows: bool
    meets: bool


@dataclass
class _Line:
    """A stream, and how far it has come."""

    index: int
    record: StreamRecord
    entries: Iterator[_Entry]
    tables: Tables
    warmth: Warmth
    entry: _Entry | None = None
    free: int = 0
    triggered: int | None = None
    done: int = 0

    def next(self) -> None:
        self.entry = next(self.entries, None)

    @property
    def core(self) -> int:
        return self.record.core

    @property
    def is_dma(self) -> bool:
        return self.record.engine is Engine.DMA


def duration(executable: Executable, target: Target) -> int | None:
    """Picoseconds from the first issue to the last completion; None if it is too long to walk, or
    comes to a stop.
    """
    if sum(_count(stream.items) for stream in executable.streams) > MOST:
        return None
    return _Walk(executable, target).go()


def _count(items: tuple[InstructionRecord | LoopRecord, ...]) -> int:
    """Items of a stream, loops with their turns."""
    at, total = 0, 0
    while at < len(items):
        item, at = items[at], at + 1
        if isinstance(item, LoopRecord):
            turns = 1 if item.trips is None else item.trips
            total += turns * _count(items[at : at + item.length])
            at += item.length
        else:
            total += 1
    return total


class _Walk:
    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable = executable
        self.clock = Clock(executable, target)
        self.semaphore_ps = semaphore_ps(target)
        self.cores = max(1, executable.cores)
        self.tokens = [[deque[int]() for _ in range(executable.semaphores)] for _ in self._cores()]
        self.parked: list[dict[int, _Line]] = [{} for _ in self._cores()]
        self.dma_free = [0 for _ in self._cores()]
        self.met: dict[tuple[Engine, int], dict[int, tuple[_Line, int]]] = {}
        self.lines = [
            _Line(i, s, _unrolled(self._entries(s)), Tables(target), Warmth(target))
            for i, s in enumerate(executable.streams)
        ]
        self.engines = {(o.core, o.record.engine): o for o in self.lines if not o.is_dma}
        self.free: dict[tuple[int, Engine], int] = {}
        self.end = 0

    def _cores(self) -> range:
        return range(self.cores)

    def _entries(self, stream: StreamRecord) -> list[_Entry | LoopRecord]:
        """What there is to know of each item; of equal ones, once."""
        found: list[_Entry | LoopRecord] = []
        before: set[int] = set()
        for record in stream.items:
            if isinstance(record, LoopRecord):
                found.append(record)
                before = set()
                continue
            timing, _ = self.clock.of(record, stream.engine, stream.queue)
            row = record.row
            if row is None:
                found.append(_Entry(record, timing, "", False, False))
                continue
            reads, writes = self.clock.touched(record, stream.engine)
            fixed = len(record.operands) <= len(row.operands)
            waits = stream.engine is not Engine.DMA and not before.isdisjoint(reads)
            table = activation_table(row, record.attributes, stream.engine)
            found.append(_Entry(record, timing, table, waits or not fixed, row.is_rendezvous))
            before = writes if fixed else set()
        return found

    def go(self) -> int | None:
        for line in self.lines:
            line.next()
        queue = [(0, line.index) for line in self.lines]
        while queue:
            now, index = heappop(queue)
            again = self._advance(self.lines[index], now, queue)
            if again is not None:
                heappush(queue, (again, index))
        return None if any(line.entry is not None for line in self.lines) else self.end

    def _advance(self, line: _Line, now: int, queue: list[tuple[int, int]]) -> int | None:
        """Passes the stream's next items while no other stream comes first; when to go on."""
        while True:
            entry = line.entry
            if entry is None:
                return None
            start = self._start(line, entry, now)
            if start is None:
                return None
            if start > now and queue and start > queue[0][0]:
                return start
            if entry.timing.trigger:
                start = self._triggered(line, entry, start)
                if start > now and queue and start > queue[0][0]:
                    return start
            if not entry.meets:
                self._pass(line, entry, start, queue)
            elif not self._meet(line, start, queue):
                return None
            now = line.free
            if queue and queue[0][0] < now:
                return now

    def _start(self, line: _Line, entry: _Entry, now: int) -> int | None:
        """When the item can start; None if a signal is not there yet."""
        start = max(now, line.free, line.done if entry.follows else 0)
        tokens = self.tokens[line.core]
        for semaphore, count in entry.record.waits:
            there = tokens[semaphore]
            if len(there) < count:
                self.parked[line.core][semaphore] = line
                return None
            start = max(start, there[count - 1] + self.semaphore_ps)
        return start

    def _triggered(self, line: _Line, entry: _Entry, start: int) -> int:
        """When a transfer that could start at `start` is triggered."""
        if line.triggered is None:
            by, trigger = (line.core, entry.timing.by), entry.timing.trigger
            engine = self.engines.get(by)
            free = engine.free if engine is not None else self.free.get(by, 0)
            line.triggered = max(start, free)
            if engine is not None:
                engine.free = line.triggered + trigger
            else:
                self.free[by] = line.triggered + trigger
        return line.triggered

    def _pass(self, line: _Line, entry: _Entry, start: int, queue: list[tuple[int, int]]) -> None:
        tokens = self.tokens[line.core]
        for semaphore, count in entry.record.waits:
            for _ in range(count):
                tokens[semaphore].popleft()
        self._pass_time(line, entry, start)
        for semaphore in entry.record.signals:
            tokens[semaphore].append(line.done)
            waiting = self.parked[line.core].pop(semaphore, None)
            if waiting is not None:
                heappush(queue, (max(waiting.free, start), waiting.index))
        line.next()

    def _pass_time(self, line: _Line, entry: _Entry, start: int) -> None:
        hold, latency, lead, pool, *_ = entry.timing
        if line.is_dma:
            line.triggered = None
            start = max(start, self.dma_free[line.core])
            self.dma_free[line.core] = start + pool
        elif line.record.engine is Engine.TENSOR:
            hold = line.warmth.stretched(start, hold)
        if entry.table:
            hold += line.tables.loading(entry.table)
        line.free = start + hold
        line.done = max(line.done, line.free + lead + latency)
        self.end = max(self.end, line.done)

    def _meet(self, line: _Line, start: int, queue: list[tuple[int, int]]) -> bool:
        """The core has come to a meeting, in the stream of this name; whether all have."""
        here = self.met.setdefault((line.record.engine, line.record.queue), {})
        here[line.core] = (line, start)
        if len(here) < self.cores:
            return False
        together = max(begun for _, begun in here.values())
        if self.cores > 1:
            together += self.semaphore_ps
        if line.is_dma:
            together = max(together, *self.dma_free)
        for other, _ in [here[core] for core in sorted(here)]:
            if other.entry is not None:
                self._pass(other, other.entry, together, queue)
            if other is not line:
                heappush(queue, (other.free, other.index))
        here.clear()
        return True


def _unrolled(entries: list[_Entry | LoopRecord]) -> Iterator[_Entry]:
    """The items in the order in which they run."""
    at = 0
    while at < len(entries):
        entry, at = entries[at], at + 1
        if isinstance(entry, LoopRecord):
            body = entries[at : at + entry.length]
            at += entry.length
            for _ in range(1 if entry.trips is None else entry.trips):
                yield from _unrolled(body)
        else:
            yield entry
