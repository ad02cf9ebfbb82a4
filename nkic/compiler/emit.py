"""The stage: converts streams to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from nkic.artifact.records import (
    Executable,
    FileRecord,
    Head,
    Items,
    LoopRecord,
    OffsetRecord,
    OperandRecord,
    Operands,
    ParameterRecord,
    PatternRecord,
    PlaceRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.base.source import CallChain, SourceFile
from nkic.machine.operands import Register, Row
from nkic.machine.targets import Address, Buffer
from nkic.program.program import (
    AccessPattern,
    Dynamic,
    Loop,
    Operand,
    Program,
    Role,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    Tensor,
    View,
    Wait,
)

# ---- The tables of a file: source places and tensors, numbered in order of first use ------------

_NOWHERE = Address(0, 0)
_INTERNAL = Role.INTERNAL.value


class PlaceTable:
    """The rows of call chains; a chain's caller has a row of its own."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self.sources = sources
        self.rows: list[PlaceRecord] = []
        self.files: list[FileRecord] = []
        self.row_of: dict[int, int] = {}  # by the chain's identity
        self._chains: list[CallChain] = []  # keeps objects alive whose ids are keys
        self._row_of_place: dict[PlaceRecord, int] = {}
        self._file_of: dict[str, int] = {}

    def index(self, chain: CallChain | None) -> int:
        """Return the row of `chain`; -1 for None."""
        if chain is None:
            return -1
        cached = self.row_of.get(id(chain))
        if cached is not None:
            return cached
        span = chain.span
        caller = self.index(chain.caller)
        place = PlaceRecord(
            self._file(span.path), span.line, span.column, span.end_line, span.end_column, caller
        )
        row = self._row_of_place.setdefault(place, len(self.rows))
        if row == len(self.rows):
            self.rows.append(place)
        self.row_of[id(chain)] = row
        self._chains.append(chain)
        return row

    def _file(self, path: str) -> int:
        if path not in self._file_of:
            source = self.sources.get(path)
            text = source.text if source is not None else ""
            self._file_of[path] = len(self.files)
            self.files.append(FileRecord(path, sha256(text.encode()).hexdigest(), text))
        return self._file_of[path]


class Tensors:
    """The rows of tensors. Their `core` is -1 for shared HBM."""

    def __init__(self, program: Program, places: PlaceTable) -> None:
        self.program = program
        self.places = places
        self.rows: list[TensorRecord] = []
        self.row_of: dict[int, int] = {}  # by the tensor's number
        roles = dict.fromkeys(program.constants, Role.CONSTANT.value)
        roles |= {p.tensor.number: Role.OUTPUT.value for p in program.outputs}
        self._roles = roles | {p.tensor.number: Role.INPUT.value for p in program.inputs}

    def index(self, tensor: Tensor, core: int) -> int:
        """Return the row of `tensor`, which is added at its first use, by `core`."""
        row = self.row_of.get(tensor.number)
        return self.add(tensor, core) if row is None else row

    def add(self, tensor: Tensor, core: int) -> int:
        number, buffer = tensor.number, tensor.buffer
        partition, byte = self.program.addresses.get(number, _NOWHERE)
        owner = -1 if buffer is Buffer.SHARED_HBM else core
        role = self._roles.get(number, _INTERNAL)
        fields = (tensor.name, tensor.dtype, tensor.shape, buffer, owner, role)
        place = self.places.index(tensor.at)
        row = self.row_of[number] = len(self.rows)
        self.rows.append(tuple.__new__(TensorRecord, (*fields, partition, byte, place)))
        return row


# --------------------------------------------------------------------------------------------------

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
    operands = Operands()
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
    loops = [loop for emitter in emitters for loop in emitter.loops]
    numbers = {t.number: t for t in program.tensors}
    constants = {
        tensors.index(numbers[n], 0): data for n, data in sorted(program.constants.items())
    }
    return Executable(
        name=program.name,
        target=program.target.name,
        cores=len(schedule.cores),
        semaphores=_count(s for emitter in emitters for s in emitter.semaphores()),
        registers=_count([*registers, *_bounds(loops)]),
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


def _bounds(loops: Iterable[LoopRecord]) -> Iterable[int]:
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
        self.operands = operands
        # Numbers of operands, keyed by identity: lower interns patterns.
        self.numbers: dict[int, int] = {id(None): 0}
        # Heads, keyed by identities of their parts: schedule interns waits and signals.
        self.heads: dict[tuple[int, ...], Head] = {}
        self.loops: list[LoopRecord] = []
        # The holders of the run-time offsets of the current instruction.
        self.hidden: list[OperandRecord] = []

    def semaphores(self) -> Iterator[int]:
        for head in self.heads.values():
            yield from (semaphore for semaphore, _ in head.waits)
            yield from head.signals

    def stream(self, stream: Stream) -> StreamRecord:
        items = Items(self.operands)
        self.items(stream.items, items)
        return StreamRecord(self.core, stream.id.engine, stream.id.queue, items)

    def items(self, items: Sequence[StreamItem], into: Items) -> None:
        """Append the records of items, bodies of loops included."""
        for item in items:
            if isinstance(item, Slot):
                self.slot(item, into)
                continue
            body = Items(self.operands)
            self.items(item.items, body)
            into.extend(self.loop(item.loop, len(body)), body)

    def loop(self, loop: Loop, length: int) -> LoopRecord:
        place = self.places.index(loop.at)
        record = LoopRecord(
            length, loop.counter, loop.start, loop.stop, loop.step, loop.condition, place
        )
        self.loops.append(record)
        return record

    def slot(self, slot: Slot, into: Items) -> None:
        instruction, waits, signals = slot
        if instruction is None:
            into.append(self.head(None, (), waits, signals, None, 0))
            return
        row, operands, attributes, _, at, _, _, _, _, _, iterations = instruction
        known = self.numbers.get
        references = [known(id(o)) or self.number(o, operands) for o in operands]
        if self.hidden:
            references += map(self.operands.add, self.hidden)
            self.hidden.clear()
        into.references += references
        into.heads.append(self.head(row, attributes, waits, signals, at, len(references)))
        iteration = self.iterations.get(iterations, -1)
        if iteration < 0 and iterations:
            iteration = self.iterations[iterations] = len(self.iterations)
        into.iterations.append(iteration)

    def head(
        self,
        row: Row | None,
        attributes: tuple[Any, ...],
        waits: tuple[Wait, ...],
        signals: tuple[int, ...],
        at: CallChain | None,
        count: int,
    ) -> Head:
        key = (id(row), id(attributes), id(waits), id(signals), id(at), count)
        head = self.heads.get(key)
        if head is None:
            numbers = tuple([(wait.semaphore, wait.amount) for wait in waits])
            head = Head(row, attributes, numbers, signals, self.places.index(at), count)
            self.heads[key] = head
        return head

    def number(self, operand: Operand, operands: Sequence[Operand]) -> int:
        """Return the number of an operand, one of `operands`, that is not in `numbers`."""
        if operand is None:
            return 0
        if not isinstance(operand, AccessPattern):
            number = self.operands.add(self.record(operand))
        else:
            number = self.pattern(operand, len(operands))
            if operand.dynamic is not None:  # its offset's holder has another index next time
                return number
        self.numbers[id(operand)] = number
        return number

    def pattern(self, pattern: AccessPattern, count: int) -> int:
        """Append a pattern of an instruction with `count` operands, and return its number."""
        tensor, dtype, start, partitions, offset, dims, by = pattern
        dynamic = None if by is None else self.dynamic(by, count)
        index = self.tensors.row_of.get(tensor.number)
        if index is None:
            index = self.tensors.add(tensor, self.core)
        return self.operands.pattern(index, dtype, start, partitions, offset, dims, dynamic)

    def dynamic(self, by: Dynamic, count: int) -> OffsetRecord:
        """Return the record of a run-time offset, whose holder follows the `count` operands."""
        kind, source, stride, limit, axis = by
        self.hidden.append(self.record(source))
        return OffsetRecord(kind, count + len(self.hidden) - 1, stride, limit, axis)

    def record(self, operand: Operand) -> OperandRecord:
        """Return the record of an operand without a run-time offset."""
        if isinstance(operand, AccessPattern):
            tensor, dtype, start, partitions, offset, dims, _ = operand
            index = self.tensors.index(tensor, self.core)
            return PatternRecord(index, dtype, start, partitions, offset, dims)
        if isinstance(operand, View):
            raise TypeError("a view reached emit: lower has not run")
        if isinstance(operand, Register):
            self.registers.add(operand.number)
        return operand
