"""The stage: streams to records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nkic.base.source import SourceFile
from nkic.emit.tables import PlaceTable, Tensors
from nkic.ir.program import Instruction, Loop, Operand
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem, StreamLoop, slots
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
    """The executable of `schedule`. `sources` are the kernel's files by the path in spans."""
    program = schedule.program
    places = PlaceTable(sources)
    tensors = Tensors(program, places)
    turns: dict[str, int] = {}
    inputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.inputs)
    outputs = tuple(ParameterRecord(p.name, tensors.index(p.tensor, 0)) for p in program.outputs)
    streams = tuple(
        _CoreEmitter(number, places, tensors, turns).stream(stream)
        for number, core in enumerate(schedule.cores)
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
        semaphores=_count(s for core in schedule.cores for stream in core for s in _used(stream)),
        registers=_count(_registers(streams)),
        tensors=tuple(tensors.rows),
        inputs=inputs,
        outputs=outputs,
        streams=streams,
        constants=constants,
        places=tuple(places.rows),
        files=tuple(places.files),
        arguments=dict(program.arguments),
        meta=dict(meta or {}),
        turns=tuple(turns),
    )


def _count(numbers: Iterable[int]) -> int:
    return max(numbers, default=-1) + 1


def _used(stream: Stream) -> Iterable[int]:
    for slot in slots(stream.items):
        yield from slot.signals
        yield from (wait.semaphore for wait in slot.waits)


def _registers(streams: Iterable[StreamRecord]) -> Iterable[int]:
    for stream in streams:
        for item in stream.items:
            values = (
                item.operands
                if isinstance(item, InstructionRecord)
                else (item.counter, item.start, item.stop, item.condition)
            )
            yield from (value.number for value in values if isinstance(value, Register))


class _CoreEmitter:
    def __init__(
        self, number: int, places: PlaceTable, tensors: Tensors, turns: dict[str, int]
    ) -> None:
        self.number = number
        self.places = places
        self.turns = turns
        self.tensors = tensors
        self.known: dict[int, PatternRecord] = {}  # by identity: lower shares equal patterns

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
        waits = tuple((wait.semaphore, wait.amount) for wait in slot.waits)
        instruction = slot.instruction
        if instruction is None:
            return InstructionRecord(None, (), (), waits, slot.signals, -1)
        return InstructionRecord(
            instruction.row,
            self.operands(instruction),
            instruction.attributes,
            waits,
            slot.signals,
            self.places.index(instruction.at),
            self.turns.setdefault(instruction.turns, len(self.turns)) if instruction.turns else -1,
        )

    def operands(self, instruction: Instruction) -> tuple[OperandRecord, ...]:
        hidden: list[OperandRecord] = []
        count = len(instruction.operands)
        known = self.known
        own = [known.get(id(o)) or self.operand(o, hidden, count) for o in instruction.operands]
        return (*own, *hidden)

    def operand(self, operand: Operand, hidden: list[OperandRecord], count: int) -> OperandRecord:
        if isinstance(operand, View):
            raise TypeError("a view reached emit: lower has not run")
        if not isinstance(operand, AccessPattern):
            return operand
        dynamic = None
        if operand.dynamic is not None:
            kind, source, stride, limit, axis = operand.dynamic
            hidden.append(self.operand(source, hidden, count))
            dynamic = OffsetRecord(kind, count + len(hidden) - 1, stride, limit, axis)
        tensor, dtype, start, partitions, offset, dims, _ = operand
        number = self.tensors.index(tensor, self.number)
        record = PatternRecord(number, dtype, start, partitions, offset, dims, dynamic)
        if dynamic is None:
            self.known[id(operand)] = record
        return record
