"""How long an order of issue takes: time passes over it as over the streams that it becomes.

List scheduling decides at moments when nobody knows what comes after, and takes its times from
that. Here the order is known: each stream in turn, its items when what they wait for is complete.
Semaphores are one for each wait that no earlier wait of its stream implies, which changes no time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern
from nkic.machine.clock.passing import Entry, Line, Passing
from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.schedule.placed import Placed, Timings, engine_of, table_of

Places = tuple[list[int], list[int]]  # of operands: those waited for, and those written


def replayed(
    placed: Sequence[Placed],
    waits: Mapping[int, Sequence[int]],
    timings: Timings,
    accesses: Accesses,
) -> int | None:
    """Picoseconds from the first issue to the last completion; None if it comes to a stop. `waits`
    are what each instruction waits for, by number.
    """
    wires = _Wires(placed, waits)
    streams: dict[StreamId, list[Entry]] = defaultdict(list)
    before: dict[StreamId, set[int]] = defaultdict(set)
    for one, stream in placed:
        reads, writes, fixed, table = accesses.of(one)
        follows = not before[stream].isdisjoint(reads)  # a queue does not wait for its own
        entry = Entry(
            timings.of(one, stream.queue),
            table,
            follows or not fixed,
            False,  # the other cores are not known
            wires.waits[one.number],
            wires.signals[one.number],
        )
        streams[stream].append(entry)
        before[stream] = writes if fixed else set()
    lines = [
        Line(i, 0, stream.engine, stream.queue, iter(streams[stream]), timings.target)
        for i, stream in enumerate(sorted(streams, key=_place))
    ]
    return Passing(lines, 1, wires.count, timings.target).go()


_ENGINES = {engine: i for i, engine in enumerate(Engine)}


def _place(stream: StreamId) -> tuple[int, int]:
    """Streams come in the order in which the file has them, which decides ties."""
    return _ENGINES[stream.engine], stream.queue


class _Wires:
    """Who signals whom, by instruction."""

    def __init__(self, placed: Sequence[Placed], waits: Mapping[int, Sequence[int]]) -> None:
        self.waits: dict[int, list[tuple[int, int]]] = {}
        self.signals: dict[int, list[int]] = {}
        self.count = 0
        where: dict[int, tuple[StreamId, int]] = {}
        known: dict[tuple[StreamId, StreamId], int] = {}
        for position, (one, stream) in enumerate(placed):
            number = one.number
            where[number] = stream, position
            self.waits[number], self.signals[number] = [], []
            for source in _latest(waits[number], where, stream):
                pair, at = (stream, where[source][0]), where[source][1]
                if known.get(pair, -1) < at:
                    known[pair] = at
                    self._connect(source, number)

    def _connect(self, source: int, number: int) -> None:
        self.signals[source].append(self.count)
        self.waits[number].append((self.count, 1))
        self.count += 1


def _latest(
    sources: Sequence[int], where: Mapping[int, tuple[StreamId, int]], own: StreamId
) -> list[int]:
    """The last of the sources in each stream, as streams complete in order; a compute engine knows
    of its own results.
    """
    found: dict[StreamId, int] = {}
    for source in sources:
        stream, position = where[source]
        if stream == own and own.engine is not Engine.DMA:
            continue
        if stream not in found or where[found[stream]][1] < position:
            found[stream] = source
    return list(found.values())


class Access(NamedTuple):
    """The tensors that an instruction reads and writes (none for a transfer), whether all places
    are known before the run, and the activation table that it needs.
    """

    reads: set[int]
    writes: set[int]
    fixed: bool
    table: str


class Accesses:
    """What the instructions of one core touch, as `pace.Clock.touched` says it of records."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.known: dict[tuple[Row, tuple[object, ...]], Places] = {}
        self.of_each: dict[int, Access] = {}  # by number

    def of(self, one: Instruction) -> Access:
        """What `one` touches."""
        found = self.of_each.get(one.number)
        if found is None:
            found = self.of_each[one.number] = self._of(one)
        return found

    def _of(self, one: Instruction) -> Access:
        operands = one.operands
        fixed = not any(type(o) is AccessPattern and o.dynamic is not None for o in operands)
        if engine_of(one) is Engine.DMA:
            return Access(set(), set(), fixed, "")
        key = (one.row, one.attributes)
        if key not in self.known:
            self.known[key] = self._places(one)
        reads, writes = self.known[key]
        return Access(_tensors(one, reads), _tensors(one, writes), fixed, table_of(one))

    def _places(self, one: Instruction) -> Places:
        row, facts = one.row, one.facts(self.target)
        modes = [row.access_of(operand, facts) for operand in row.operands]
        reads = [i for i, m in enumerate(modes) if m.reads and i != row.accumulator]
        return reads, [i for i, m in enumerate(modes) if m.writes]


def _tensors(one: Instruction, places: Sequence[int]) -> set[int]:
    here = [one.operands[i] for i in places if i < len(one.operands)]
    return {o.tensor.number for o in here if type(o) is AccessPattern}
