"""The stage: converts streams to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nkic.base.source import SourceFile
from nkic.emit.tables import PlaceTable, Tensors
from nkic.ir.program import Instruction, Loop, Operand
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem, StreamLoop, Wait
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.facts import Register
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
    schedule: Schedule, sources: Mapping[str, SourceFile], meta: Meta | None = None
) -> Executable:
    """Return the executable of `schedule`. `sources` maps the paths in spans to the files."""
    program = schedule.program
    places = PlaceTable(sources)
    tensors = Tensors(program, places)
    iterations: dict[str, int] = {}
    registers: set[int] = set()
    inputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.inputs)
    outputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.outputs)
    emitters = [
        _CoreEmitter(number, places, tensors, iterations, registers)
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
        number: int,
        places: PlaceTable,
        tensors: Tensors,
        iterations: dict[str, int],
        registers: set[int],
    ) -> None:
        self.number = number
        self.places = places
        self.iterations = iterations
        self.tensors = tensors
        self.registers = registers  # registers used as operands
        self.waits: dict[tuple[Wait, ...], tuple[tuple[int, int], ...]] = {}
        self.signals: set[tuple[int, ...]] = set()
        # Keyed by identity: lower interns patterns.
        self.pattern_records: dict[int, PatternRecord] = {}

    def semaphores(self) -> Iterator[int]:
        """Yield the semaphores of the streams so far."""
        yield from (wait.semaphore for waits in self.waits for wait in waits)
        yield from (semaphore for signals in self.signals for semaphore in signals)

    def stream(self, stream: Stream) -> StreamRecord:
        return StreamRecord(
            self.number, stream.id.engine, stream.id.queue, self.items(stream.items)
        )

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
        row, _, attributes, _, at, *_, iterations = instruction
        iteration = (
            self.iterations.setdefault(iterations, len(self.iterations)) if iterations else -1
        )
        operands, place = self.operands(instruction), self.places.index(at)
        fields = (row, operands, attributes, waits, signals, place, iteration)
        return tuple.__new__(InstructionRecord, fields)

    def operands(self, instruction: Instruction) -> tuple[OperandRecord, ...]:
        hidden: list[OperandRecord] = []
        count = len(instruction.operands)
        cached = self.pattern_records
        explicit = [
            None if o is None else cached.get(id(o)) or self.operand(o, hidden, count)
            for o in instruction.operands
        ]
        return (*explicit, *hidden) if hidden else tuple(explicit)

    def operand(self, operand: Operand, hidden: list[OperandRecord], count: int) -> OperandRecord:
        if not isinstance(operand, AccessPattern):
            if isinstance(operand, View):
                raise TypeError("a view reached emit: lower has not run")
            if isinstance(operand, Register):
                self.registers.add(operand.number)
            return operand
        dynamic = None
        if operand.dynamic is not None:
            kind, source, stride, limit, axis = operand.dynamic
            hidden.append(self.operand(source, hidden, count))
            dynamic = OffsetRecord(kind, count + len(hidden) - 1, stride, limit, axis)
        tensor, dtype, start, partitions, offset, dims, _ = operand
        number = self.tensors.index(tensor, self.number)
        fields = (number, dtype, start, partitions, offset, dims, dynamic)
        record = tuple.__new__(PatternRecord, fields)
        if dynamic is None:
            self.pattern_records[id(operand)] = record
        return record
