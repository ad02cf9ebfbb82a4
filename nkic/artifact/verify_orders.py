"""Optional verification that no two accesses of one core race.

Every pair of conflicting accesses to memory, engine state or registers must be ordered by streams
and semaphores. Every file that nkic writes passes: a failing file was modified, or made by another
tool. Run-time offsets may point anywhere. Races between cores in shared HBM are detected at run
time (`simulate.orders`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.artifact.verify import Unsound
from nkic.machine.operands import Register
from nkic.machine.targets import TARGETS, Target
from nkic.prove.effects import WHOLE, Areas, Reading, area, modes_of
from nkic.prove.model import READ, WRITE, Box, Item, Line, Round, Storage
from nkic.prove.order import Unordered, unordered
from nkic.prove.run import DECISION, AbstractRun


def verify_orders(executable: Executable) -> None:
    """Raise `Unsound` for the first two conflicting accesses of a core that are not ordered."""
    target = TARGETS[executable.target]
    readers = [_Reader(executable, target, core) for core in range(executable.cores)]
    for stream in executable.streams:
        readers[stream.core].stream(stream)
    run = AbstractRun([reader.lines for reader in readers])
    run.run()
    for core, reader in zip(run.cores, readers, strict=True):
        reader.reading.cut(reader.areas)
        for conflict in unordered(core, reader.reading, reader.storages()):
            raise reader.unsound(conflict)


class _Source(NamedTuple):
    """The position of an instruction in the file."""

    stream: StreamRecord
    position: int
    record: InstructionRecord


class _Reader:
    """The streams of one core, and the accesses of their records.

    Patterns are memoised by identity: the executable keeps them alive.
    """

    def __init__(self, executable: Executable, target: Target, core: int) -> None:
        self.executable = executable
        self.target = target
        self.core = core
        self.lines: list[Line] = []
        self.reading = Reading()
        self.areas: dict[int, Areas] = {}
        self.cells_of_pattern: dict[int, list[int]] = {}
        self.sources: list[_Source] = []
        self.loops = count()

    def stream(self, stream: StreamRecord) -> None:
        items = self.items(stream, 0, len(stream.items))
        self.lines.append(Line(stream.engine, stream.queue, items))

    def items(self, stream: StreamRecord, low: int, high: int) -> tuple[Item | Round, ...]:
        converted: list[Item | Round] = []
        while low < high:
            record = stream.items[low]
            if isinstance(record, LoopRecord):
                converted.append(self.round(stream, low, record))
                low += record.length
            else:
                converted.append(self.item(_Source(stream, low, record)))
            low += 1
        return tuple(converted)

    def round(self, stream: StreamRecord, at: int, record: LoopRecord) -> Round:
        # Unique numbers: streams do not record which of their loops are the same loop.
        number = next(self.loops)
        bounds = tuple(v.number for v in (record.start, record.stop) if isinstance(v, Register))
        counter = record.counter.number if record.counter is not None else -1
        bounds = tuple(n for n in bounds if n != counter)
        condition = record.condition.number if record.condition is not None else -1
        items = self.items(stream, at + 1, at + 1 + record.length)
        return Round(number, bounds, condition, items)

    def item(self, source: _Source) -> Item:
        row, _, _, waits, signals, *_ = source.record
        if row is None:
            return Item(-1, waits, signals)
        key = len(self.sources)
        self.sources.append(source)
        self.reading.touches[key] = tuple(self.touches(source))
        return Item(key, waits, signals, row if row.is_rendezvous else None)

    def touches(self, source: _Source) -> list[tuple[list[int], int, int]]:
        record, row = source.record, source.record.row
        if row is None:
            return []
        facts = self.executable.facts(record, self.target, source.stream.engine)
        modes = (*modes_of(row, facts), *[READ] * len(record.operands))  # hidden operands come last
        accesses = []
        for operand, mode in zip(record.operands, modes, strict=False):
            if isinstance(operand, PatternRecord):
                accesses.append((self.cells(operand), mode, operand.tensor))
            elif isinstance(operand, Register):
                accesses.append(self.reading.register(operand.number, mode))
        effects = row.effects(facts)
        for names, mode in ((effects.reads, READ), (effects.writes, WRITE)):
            accesses += [self.reading.cell_of(name, mode) for name in names]
        return accesses

    def cells(self, pattern: PatternRecord) -> list[int]:
        memoised = self.cells_of_pattern.get(id(pattern))
        if memoised is None:
            tensor = self.executable.tensors[pattern.tensor]
            self.reading.names[pattern.tensor] = tensor.name
            self.reading.wholes[pattern.tensor] = _whole(tensor)
            boxes = self.areas.setdefault(pattern.tensor, {})
            memoised = self.cells_of_pattern[id(pattern)] = boxes.setdefault(
                _area(pattern, tensor), []
            )
        return memoised

    def storages(self) -> Sequence[Storage]:
        """Return the addresses of on-chip tensors."""
        tensors = self.executable.tensors
        return [
            Storage(number, t.buffer.value, t.partition, t.byte, t.shape[0], t.bytes)
            for number, t in ((n, tensors[n]) for n in self.areas)
            if t.buffer.on_chip
        ]

    def unsound(self, conflict: Unordered) -> Unsound:
        line, position, _, key = conflict.start
        subject = f"decides about a loop before its item {position:,}"
        name, place = self.lines[line].name, -1
        if key != DECISION:
            source = self.sources[key]
            subject = f"{source.record.row.name if source.record.row else 'nothing'}, "
            subject = f"item {source.position:,}, {subject.removesuffix(', ')}"
            place = source.record.place
        text = f"core{self.core}.{name} {subject}: nothing orders it and another access to "
        text += conflict.what
        if conflict.last is not None:
            text += f" by {self.lines[conflict.last[0]].name}"
        return Unsound(text, section="code", place=place)


def _axes(tensor: TensorRecord) -> tuple[int, ...]:
    sizes = (tensor.shape[1:] if tensor.buffer.on_chip else tensor.shape) or (1,)
    return (*sizes[:-1], sizes[-1] * tensor.dtype.size)


def _whole(tensor: TensorRecord) -> Box:
    box = tuple((0, length) for length in _axes(tensor))
    return ((0, tensor.shape[0]), *box) if tensor.buffer.on_chip else box


def _area(pattern: PatternRecord, tensor: TensorRecord) -> Box:
    if pattern.dynamic is not None:
        return WHOLE
    box = area(_axes(tensor), pattern.dtype.size, pattern.offset, pattern.dims)
    if not tensor.buffer.on_chip:
        return box
    return ((pattern.start, pattern.start + pattern.partitions), *box)
