"""The stage: converts streams to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from nkic.base.source import SourceFile
from nkic.emit.tables import PlaceTable, Tensors
from nkic.ir.program import Loop, Operand
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem, StreamLoop, Wait
from nkic.ir.tensors import AccessPattern, Dynamic, View
from nkic.machine.facts import Register
from nkic.neff.operands import Operands
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    OperandRecord,
    ParameterRecord,
    PatternRecord,
    StreamRecord,
)

Meta = Mapping[str, str]


def emit(
    schedule: Schedule,
    sources: Mapping[str, SourceFile],
    meta: Meta | None = None,
    operands: Operands | None = None,
) -> Executable:
    """Return the executable of `schedule`. `sources` maps the paths in spans to the files.

    `operands`, if given, is empty, and filled with those of the executable.
    """
    program = schedule.program
    places = PlaceTable(sources)
    tensors = Tensors(program, places)
    iterations: dict[str, int] = {}
    registers: set[int] = set()
    operands = operands if operands is not None else Operands([], [])
    operands.values.append(None)
    inputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.inputs)
    outputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.outputs)
    emitters = [
        _CoreEmitter(number, places, tensors, iterations, registers, operands)
        for number in range(len(schedule.cores))
    ]
    streams = tuple(
        emitter.stream(stream)
        for emitter, core in zip(emitters, schedule.cores, strict=True)
        for stream in core
    )
    numbers = {t.number: t for t in program.tensors}
    constants = {
        tensors.index(numbers[n], 0): data for n, data in sorted(program.constants.items())
    }
    return Executable(
        name=program.name,
        target=program.target.name,
        cores=len(schedule.cores),
        semaphores=_count(s for emitter in emitters for s in emitter.semaphores()),
        registers=_count([*registers, *_bounds(streams)]),
        tensors=tuple(tensors.rows),
        inputs=inputs,
        outputs=outputs,
        streams=streams,
        constants=constants,
        places=tuple(places.rows),
        files=tuple(places.files),
        arguments=dict(program.arguments),
        meta=dict(meta or {}),
        iterations=tuple(iterations),
    )


def _count(numbers: Iterable[int]) -> int:
    return max(numbers, default=-1) + 1


def _bounds(streams: Iterable[StreamRecord]) -> Iterable[int]:
    """Yield the numbers of the registers of loops."""
    loops = [item for stream in streams for item in stream.items if type(item) is LoopRecord]
    for loop in loops:
        values = (loop.counter, loop.start, loop.stop, loop.condition)
        yield from (value.number for value in values if isinstance(value, Register))


class _CoreEmitter:
    def __init__(
        self,
        core: int,
        places: PlaceTable,
        tensors: Tensors,
        iterations: dict[str, int],
        registers: set[int],
        operands: Operands,
    ) -> None:
        self.core = core
        self.places = places
        self.iterations = iterations
        self.tensors = tensors
        self.registers = registers  # registers used as operands
        self.waits: dict[tuple[Wait, ...], tuple[tuple[int, int], ...]] = {}
        self.signals: set[tuple[int, ...]] = set()
        self.values, self.references_of_streams = operands
        self.references: list[int] = []  # of the current stream
        # Indices of `values`, keyed by identity: lower interns patterns.
        self.numbers: dict[int, int] = {}
        # The holders of the run-time offsets of the current instruction.
        self.hidden: list[OperandRecord] = []

    def semaphores(self) -> Iterator[int]:
        """Yield the semaphores of the streams so far."""
        yield from (wait.semaphore for waits in self.waits for wait in waits)
        yield from (semaphore for signals in self.signals for semaphore in signals)

    def stream(self, stream: Stream) -> StreamRecord:
        self.references = []
        self.references_of_streams.append(self.references)
        return StreamRecord(self.core, stream.id.engine, stream.id.queue, self.items(stream.items))

    def items(self, items: tuple[StreamItem, ...]) -> tuple[InstructionRecord | LoopRecord, ...]:
        records: list[InstructionRecord | LoopRecord] = []
        for item in items:
            if isinstance(item, StreamLoop):
                body = self.items(item.items)
                records += [self.loop(item.loop, len(body)), *body]
            else:
                records.append(self.slot(item))
        return tuple(records)

    def loop(self, loop: Loop, length: int) -> LoopRecord:
        place = self.places.index(loop.at)
        return LoopRecord(
            length, loop.counter, loop.start, loop.stop, loop.step, loop.condition, place
        )

    def slot(self, slot: Slot) -> InstructionRecord:
        instruction, its_waits, signals = slot
        waits = self.waits.get(its_waits) if its_waits else ()
        if waits is None:
            waits = self.waits[its_waits] = tuple([(w.semaphore, w.amount) for w in its_waits])
        if signals:
            self.signals.add(signals)
        if instruction is None:
            return InstructionRecord(None, (), (), waits, signals, -1)
        row, its_operands, attributes, _, at, _, _, _, _, _, iterations = instruction
        known, values = self.numbers.get, self.values
        references = [known(id(o)) or self.number(o, its_operands) for o in its_operands]
        if self.hidden:
            references += [self.add(record) for record in self.hidden]
            self.hidden.clear()
        self.references += references
        operands = tuple([values[reference] for reference in references])
        place = self.places.row_of.get(id(at))
        if place is None:
            place = self.places.index(at)
        iteration = self.iterations.get(iterations, -1)
        if iteration < 0 and iterations:
            iteration = self.iterations[iterations] = len(self.iterations)
        fields = (row, operands, attributes, waits, signals, place, iteration)
        return tuple.__new__(InstructionRecord, fields)

    def number(self, operand: Operand, operands: Sequence[Operand]) -> int:
        """Return the number of an operand, one of `operands`, that is not in `numbers`."""
        if operand is None:
            return 0
        if isinstance(operand, AccessPattern) and operand.dynamic is not None:
            return self.add(self.dynamic(operand, operand.dynamic, len(operands)))
        values = self.values
        number = self.numbers[id(operand)] = len(values)
        values.append(self.record(operand))
        return number

    def add(self, value: OperandRecord) -> int:
        """Append a value, and return its number."""
        self.values.append(value)
        return len(self.values) - 1

    def record(self, operand: Operand) -> OperandRecord:
        """Return the record of an operand without a run-time offset."""
        if isinstance(operand, AccessPattern):
            tensor, dtype, start, partitions, offset, dims, _ = operand
            index = self.tensors.row_of.get(tensor.number)
            if index is None:
                index = self.tensors.add(tensor, self.core)
            fields = (index, dtype, start, partitions, offset, dims, None)
            return tuple.__new__(PatternRecord, fields)
        if isinstance(operand, View):
            raise TypeError("a view reached emit: lower has not run")
        if isinstance(operand, Register):
            self.registers.add(operand.number)
        return operand

    def dynamic(self, pattern: AccessPattern, by: Dynamic, count: int) -> PatternRecord:
        """Return the record of a pattern; the holder of its offset follows the `count` operands."""
        kind, source, stride, limit, axis = by
        self.hidden.append(self.record(source))
        offset = OffsetRecord(kind, count + len(self.hidden) - 1, stride, limit, axis)
        record = self.record(pattern._replace(dynamic=None))
        return cast("PatternRecord", record)._replace(dynamic=offset)
