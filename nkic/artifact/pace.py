"""The compiler's estimate of a program's run time, without computing values.

It uses the same model of time as the runner's event loop (`machine/timing.py`), so that
both agree on any program without data-dependent control flow. A loop bounded by a register counts
as one iteration; programs of more than MAX_ITEMS items are not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
)
from nkic.machine.operands import Facts, Row
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import Entry, EventLoop, Line, Timing, activation_table, timing

# ------------------------------------------------------------------------------------------------
# Durations of instructions, from the cost formulas of the table. Times are in picoseconds.

Key = tuple[object, ...]


class Clock:
    """Durations memoised by signature: equal shapes cost the same at any address."""

    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable = executable
        self.target = target
        self.timings: dict[Key, tuple[Timing, int]] = {}
        self.accesses: dict[Key, tuple[list[int], list[int]]] = {}

    def of(
        self, record: InstructionRecord, engine: Engine, queue: int = 0, facts: Facts | None = None
    ) -> tuple[Timing, int]:
        """Return the timing of `record` on an engine or DMA queue, and the bytes moved by DMA.

        `facts` are its facts if the caller has made them.
        """
        if record.row is None:
            return Timing(0, 0), 0
        key = self.signature(record, engine, queue)
        cached = self.timings.get(key)
        if cached is None:
            facts, row = facts or self.executable.facts(record, self.target, engine), record.row
            moved = 0  # what a transfer writes
            for operand in row.operands if engine is Engine.DMA else ():
                tile = facts.maybe(operand.name)
                if tile is not None and row.access_of(operand, facts).writes:
                    moved += tile.elements * tile.dtype.size
            cached = self.timings[key] = timing(row, facts, engine, queue), moved
        return cached

    def signature(self, record: InstructionRecord, engine: Engine, queue: int) -> Key:
        """Return what the timing of `record` depends on."""
        tensors = self.executable.tensors
        shapes = [
            o.cost_key(tensors[o.tensor].buffer) if type(o) is PatternRecord else o
            for o in record.operands
        ]
        return (record.row, engine, queue, record.attributes, *shapes)

    def touched(
        self, record: InstructionRecord, row: Row, engine: Engine
    ) -> tuple[set[int], set[int]]:
        """Return the tensors that `record` reads and those that it writes.

        A tensor to which the engine accumulates does not count as read: it need not be waited for.
        """
        key = self.signature(record, engine, -1)
        cached = self.accesses.get(key)
        if cached is None:
            facts = self.executable.facts(record, self.target, engine)
            modes = [row.access_of(operand, facts) for operand in row.operands]
            reads = [i for i, m in enumerate(modes) if m.reads and i != row.accumulator]
            cached = self.accesses[key] = (reads, [i for i, m in enumerate(modes) if m.writes])
        return _tensors(record, cached[0]), _tensors(record, cached[1])


def _tensors(record: InstructionRecord, indices: list[int]) -> set[int]:
    selected = [record.operands[i] for i in indices if i < len(record.operands)]
    return {operand.tensor for operand in selected if type(operand) is PatternRecord}


# --------------------------------------------------------------------------------------------------

MAX_ITEMS = 2_000_000  # in all iterations of loops


def duration(executable: Executable, target: Target) -> int | None:
    """Return the time from the first issue to the last completion, in picoseconds.

    None if the program is too long to simulate, or deadlocks.
    """
    if items(executable) > MAX_ITEMS:
        return None
    clock = Clock(executable, target)
    lines = [
        Line(i, s.core, s.engine, s.queue, _unrolled(_entries(s, clock)), target)
        for i, s in enumerate(executable.streams)
    ]
    return EventLoop(lines, max(1, executable.cores), executable.semaphores, target).run()


def items(executable: Executable) -> int:
    """Return the number of items of a program, in all iterations of loops."""
    return sum(
        repeat
        for stream in executable.streams
        for item, repeat in stream.repeated()
        if not isinstance(item, LoopRecord)
    )


def _entries(stream: StreamRecord, clock: Clock) -> list[Entry | LoopRecord]:
    """Return the entry of each item, for the simulation of time."""
    entries: list[Entry | LoopRecord] = []
    written: set[int] = set()
    for record in stream.items:
        if isinstance(record, LoopRecord):
            entries.append(record)
            written = set()
            continue
        timing, _ = clock.of(record, stream.engine, stream.queue)
        row, waits, signals = record.row, record.waits, record.signals
        if row is None:
            entries.append(Entry(timing, waits=waits, signals=signals))
            continue
        reads, writes = clock.touched(record, row, stream.engine)
        fixed = len(record.operands) <= len(row.operands)
        follows = stream.engine is not Engine.DMA and not written.isdisjoint(reads)
        table = activation_table(row, record.attributes, stream.engine)
        meets = row.is_rendezvous
        entries.append(Entry(timing, table, follows or not fixed, meets, waits, signals))
        written = writes if fixed else set()
    return entries


def _unrolled(entries: list[Entry | LoopRecord]) -> Iterator[Entry]:
    """Yield the items in execution order."""
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
