"""The compiler's estimate of a program's run time, without computing values.

It uses the same model of time as the runner's event loop (`machine/clock/simulation.py`), so that
both agree on any program without data-dependent control flow. A loop bounded by a register counts
as one iteration; programs of more than MAX_ITEMS items are not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.machine.clock.simulation import Entry, Line, TimeSimulation
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import activation_table
from nkic.neff.records import Executable, LoopRecord, StreamRecord
from nkic.pace.clock import Clock

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
    return TimeSimulation(lines, max(1, executable.cores), executable.semaphores, target).run()


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
        reads, writes = clock.touched(record, stream.engine)
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
