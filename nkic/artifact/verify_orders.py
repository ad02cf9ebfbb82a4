"""Verification, before every run by default, that no two accesses of one core race.

Every pair of conflicting accesses to memory, engine state or registers must be ordered by streams
and semaphores. Every file that nkic writes passes: a failing file was modified, or made by another
tool. Run-time offsets may point anywhere. Races between cores in shared HBM are detected at run
time (`simulate.races`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count, repeat
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
from nkic.machine.operands import Facts, Register, Row, no_access, no_effects
from nkic.machine.targets import TARGETS, Target
from nkic.prove.effects import WHOLE, Areas, Reading, Touch, Touches, area, modes_of
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
        self.cells_by_id: dict[int, list[int]] = {}
        # Access modes: of rows, and of rows with attributes that refine them.
        self.fixed: dict[Row, tuple[int, ...]] = {}
        self.refined: dict[tuple[Row, int], tuple[int, ...]] = {}
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
        self.reading.touches[key] = self.touches(source, row)
        return Item(key, waits, signals, row if row.is_rendezvous else None)

    def touches(self, source: _Source, row: Row) -> Touches:
        record, reading, cells_by_id = source.record, self.reading, self.cells_by_id
        modes = self.fixed.get(row) or self.modes(source, row)
        touches: list[Touch] = []
        for operand, mode in zip(record.operands, chain(modes, repeat(READ)), strict=False):
            if type(operand) is PatternRecord:
                cells = cells_by_id.get(id(operand))
                cells = self.cells(operand) if cells is None else cells
                touches.append((cells, mode, operand.tensor))
            elif type(operand) is Register:
                touches.append(reading.register(operand.number, mode))
        if row.effects is not no_effects:
            effects = row.effects(self.facts(source))
            for names, mode in ((effects.reads, READ), (effects.writes, WRITE)):
                touches += [reading.cell_of(name, mode) for name in names]
        return tuple(touches)

    def modes(self, source: _Source, row: Row) -> tuple[int, ...]:
        """Return the access modes of the row's operands; hidden ones, which follow, are read."""
        if row.access is no_access:
            modes = self.fixed[row] = modes_of(row, self.facts(source))
            return modes
        key = row, id(source.record.attributes)  # which the executable keeps alive, like patterns
        if key not in self.refined:
            self.refined[key] = modes_of(row, self.facts(source))
        return self.refined[key]

    def facts(self, source: _Source) -> Facts:
        return self.executable.facts(source.record, self.target, source.stream.engine)

    def cells(self, pattern: PatternRecord) -> list[int]:
        """Return the cells of a pattern, which `Reading.cut` will fill in."""
        number = pattern.tensor
        tensor, boxes = self.executable.tensors[number], self.areas.get(number)
        if boxes is None:
            boxes = self.areas[number] = {}
            self.reading.names[number], self.reading.wholes[number] = tensor.name, _whole(tensor)
        cells = self.cells_by_id[id(pattern)] = boxes.setdefault(_area(pattern, tensor), [])
        return cells

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
