"""Proof of a file: its bytes, read again, hold just the schedule that was proven.

The sections are unpacked as docs/neff.md describes them and compared record by record with the
schedule's slots: row, attributes, operands with the addresses of their tensors, waits and signals.
Nothing of how emit and write made them, or of how the runner reads them, is asked. That integers
are integers, and not equal numbers of another type, is for the reader: it refuses all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain, islice
from operator import add
from typing import Any, NamedTuple

import msgpack

from nkic.base.source import CallChain
from nkic.ir.program import Instruction, Loop, Program, TensorParameter
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem
from nkic.ir.tensors import AccessPattern, Dynamic, Tensor
from nkic.machine.engines import ENGINE_CODES
from nkic.machine.facts import Register
from nkic.machine.memory import BUFFER_CODES, Buffer
from nkic.machine.operands import Row
from nkic.prove.model import Finding

# docs/neff.md: the kinds of records, and the numbers of roles and of run-time offsets.
KERNEL, TENSOR, INPUT, OUTPUT, PLACED = range(5)
PATTERN, REGISTER, NUMBER, FORM, STREAM, INSTRUCTION, LOOP, SLOT, MOVED = range(9)
INPUTS, OUTPUTS, CONSTANTS, INTERNAL = range(4)
KINDS = {"scalar": 0, "vector": 1, "columns": 2}

Record = tuple[Any, ...]
Ordered = tuple[int, Record]  # a record, and which of its stream it is
Sections = Mapping[str, bytes | memoryview]  # contents, by name


def prove_file(schedule: Schedule, sections: Sections) -> list[Finding]:
    """Where the file of `sections` differs from `schedule`; empty means proven."""
    try:
        comparison = _Comparison(schedule.program, sections)
        comparison.all(schedule)
    except (ValueError, TypeError, LookupError, msgpack.UnpackException) as error:
        return [Finding("file", f"the file's sections cannot be read: {error}")]
    return comparison.found


class _Comparison:
    """One schedule against one file.

    `same` has the reference that was found equal to the program's object of that identity, which
    the program keeps alive; `forms` the same of rows and attributes. `indices` are the file's
    tensors by the program's, and `taken` those among them: each is one of the other's.
    """

    def __init__(self, program: Program, sections: Sections) -> None:
        self.program = program
        self.found: list[Finding] = []
        layout = _records(sections["layout"])
        self.kernel = next(layout, ())
        self.declared, self.ports = _declared(layout)
        known: dict[str, str] = {}  # one object for all equal names
        self.names = [known.setdefault(name, name) for name, _ in _records(sections["debug"])]
        self.code = _Code(_records(sections["code"]))
        self.contents = _unpacked(sections, "const")
        self.same: dict[int, int] = {id(None): 0}
        self.forms: dict[tuple[int, int], int] = {}
        self.alike: dict[int, Record] = {}  # by identity of what `_Value` has: what it is of ours
        self.taken = bytearray(len(self.declared))
        self.indices: dict[int, int] = {}
        self.roles = _roles(program)
        self.core = 0
        self.before: dict[int, tuple[int, ...]] = {}  # operands of the last of a form in the stream

    def all(self, schedule: Schedule) -> None:
        program = self.program
        kind, _, target, cores, *_ = self.kernel
        if (kind, target, cores) != (KERNEL, program.target.name, len(schedule.cores)):
            self.complain(f"the file is for {cores} cores of {target}")
        wanted = [(core, s) for core, streams in enumerate(schedule.cores) for s in streams]
        for core, stream in wanted:
            head: Record = next(self.code.streams, ())
            ids = (STREAM, core, ENGINE_CODES[stream.id.engine], stream.id.queue)
            if head[:4] != ids:
                self.complain("the file has other streams")
                return
            self.core = core
            records = enumerate(islice(self.code.streams, head[4]))
            self.stream(stream, records)
            for _ in records:  # of a stream that differs: the next one follows them
                pass
        if next(self.code.streams, None) is not None:
            self.complain("the file has other streams")
        self.core = 0
        self.parameters("inputs", INPUT, program.inputs)
        self.parameters("outputs", OUTPUT, program.outputs)
        self.constants()

    def stream(self, stream: Stream, records: Iterator[Ordered]) -> None:
        """Whether the records are the stream's items, one by one, up to the first that is not."""
        self.before = {}
        try:
            self.items(stream.items, records, 0)
        except _Differs as differs:
            at, one = differs.args
            name = one.row.name if isinstance(one, Instruction) else "a slot or loop"
            text = f"stream {stream.id}: record {at} is not {name}, which was proven"
            self.complain(text, one.at if one is not None else None)
            return
        if left := sum(1 for _ in records):
            self.complain(f"stream {stream.id}: {left} records too many")

    def items(self, items: Sequence[StreamItem], records: Iterator[Ordered], at: int) -> int:
        """Compares `items` with the records, of which the next is number `at`; the number after."""
        for item in items:
            here, record = next(records, (at, ()))
            at = here + 1
            if isinstance(item, Slot):
                fits = self.slot(item, record)
            else:
                at = self.items(item.items, records, at)
                fits = repr(_loop(item.loop, at - here - 1)) == repr(record)
            if not fits:
                raise _Differs(here, item[0] if isinstance(item, Slot) else item.loop)
        return at

    def slot(self, slot: Slot, record: Record) -> bool:
        one, waits, signals = slot
        pairs = waits[0] if len(waits) == 1 else tuple(chain.from_iterable(waits))
        if one is None:
            return record == (SLOT, pairs, signals)
        if len(record) != 5:
            return False
        kind, form, operands, its_waits, its_signals = record
        if kind != INSTRUCTION or its_waits != pairs or its_signals != signals:
            return False
        before = self.before.get(form, ())
        if len(before) == len(operands):
            operands = tuple(map(add, before, operands))
        self.before[form] = operands
        row, own_operands, attributes = one[:3]
        known = self.forms.get((id(row), id(attributes))) == form
        if not known and not self.form(row, attributes, form):
            return False
        same = self.same
        for own, its in zip(own_operands, operands, strict=False):
            if same.get(id(own)) != its and not self.operand(own, its, operands):
                return False
        return len(operands) >= len(own_operands)

    def form(self, row: Row, attributes: tuple[Any, ...], form: int) -> bool:
        """1, 1.0, True and -0.0, which may be equal to Python, are not the same attribute."""
        its = self.code.forms[form] if form >= 0 else ()
        if its[:2] != (FORM, row.opcode) or repr(its[2:]) != repr((attributes,)):
            return False
        self.forms[id(row), id(attributes)] = form
        return True

    def operand(self, own: object, its: int, operands: tuple[int, ...]) -> bool:
        """Whether value `its` of the file, one of `operands`, is `own`. None is value 0."""
        record = self.code.values[its - 1] if own is not None and its > 0 else ()
        if isinstance(own, AccessPattern):
            if not isinstance(record, _Value) or not self.pattern(own, record):
                return False
            if own.dynamic is not None:  # where the offset stands is each instruction's own
                return self.dynamic(own.dynamic, record.kind[4:], operands)
            fits = len(record.kind) == 4
        elif isinstance(own, Register):
            fits = record == (REGISTER, own.number)
        else:  # 1, 1.0, True and -0.0 are not the same number
            fits = record[:1] == (NUMBER,) and repr(record[1:]) == repr((own,))
        if fits:
            self.same[id(own)] = its
        return fits

    def pattern(self, own: AccessPattern, its: _Value) -> bool:
        """All but a run-time offset."""
        kind, its_tensor, its_offset = its
        tensor, dtype, start, partitions, offset, dims, _ = own
        ours = (dtype, start, partitions, dims)
        if self.alike.get(id(kind)) != ours:
            if kind[:4] != (dtype.code, start, partitions, tuple(chain.from_iterable(dims))):
                return False
            self.alike[id(kind)] = ours
        return offset == its_offset and self.tensor(tensor, its_tensor)

    def dynamic(self, own: Dynamic, its: Record, operands: tuple[int, ...]) -> bool:
        if len(its) != 5:
            return False
        kind, source, stride, limit, axis = own
        index = its[1]
        if its != (KINDS[kind], index, stride, limit, axis) or index not in range(len(operands)):
            return False
        known = self.same.get(id(source)) == operands[index]
        return known or self.operand(source, operands[index], operands)

    def tensor(self, own: Tensor, index: int) -> bool:
        """Whether tensor `index` of the file is `own`: what it is, and where."""
        number, known = own.number, self.indices.get(own.number)
        if known is not None:
            return known == index
        if not 0 <= index < len(self.declared) or self.taken[index]:
            return False
        if self.declared[index] != self.expected(own) or self.names[index] != own.name:
            return False
        self.taken[index], self.indices[number] = True, index
        return True

    def expected(self, own: Tensor) -> _Declared:
        """What the file must declare for `own`."""
        number, buffer = own.number, own.buffer
        core = -1 if buffer is Buffer.SHARED_HBM else self.core
        role = self.roles.get(number, INTERNAL)
        partition, byte = self.program.addresses.get(number, (0, 0))
        code = BUFFER_CODES[buffer]
        return _Declared((TENSOR, own.dtype.code, own.shape, code, core, role, partition), byte)

    def parameters(self, what: str, kind: int, own: Sequence[TensorParameter]) -> None:
        its = [record[1:] for record in self.ports if record[0] == kind]
        names = [name for name, _ in own] == [name for name, _ in its]
        if not names or not all(self.tensor(t, i) for (_, t), (_, i) in zip(own, its, strict=True)):
            self.complain(f"the file has other {what}")

    def constants(self) -> None:
        found = dict(zip(self.contents[::2], self.contents[1::2], strict=True))
        for number, data in self.program.constants.items():
            if number in self.indices and found.get(self.indices[number]) != data:
                self.complain(f"the file has another content for constant %{number}")

    def complain(self, what: str, at: CallChain | None = None) -> None:
        self.found.append(Finding("file", what, at))


class _Differs(Exception):
    """A record that is not the item, of the schedule, that stands at its position."""


def _unpacked(sections: Sections, name: str) -> Record:
    found = msgpack.unpackb(sections[name], use_list=False)
    return found if isinstance(found, tuple) else ()


def _records(data: bytes | memoryview) -> Iterator[Record]:
    """The records of a section one by one: all at once take many times the room of their bytes."""
    unpacker = msgpack.Unpacker(BytesIO(data), use_list=False)
    unpack = unpacker.unpack
    for _ in range(unpacker.read_array_header()):
        yield unpack()
    if unpacker.tell() != len(data):
        raise ValueError("bytes follow the last record")


class _Declared(NamedTuple):
    """A tensor of the file: its record up to the byte, which those that are told from it share."""

    kind: Record
    byte: int


def _declared(records: Iterator[Record]) -> tuple[list[_Declared], list[Record]]:
    """The tensors, in full also where the file tells them from earlier ones; the other records."""
    found: list[_Declared] = []
    others: list[Record] = []
    for record in records:
        if record[0] == TENSOR:
            found.append(_Declared(record[:-1], record[-1]))
        elif record[0] == PLACED:
            _, back, step = record
            kind, byte = found[-back]
            if back < 1 or others:
                raise ValueError("what a tensor is like is not a tensor")
            found.append(_Declared(kind, byte + step))
        else:
            others.append(record)
    return found, others


class _Value(NamedTuple):
    """An access pattern of the file. `kind` is one object for a pattern and those that are told
    from it: dtype, start, partitions, dimensions, and the run-time offset, if any.
    """

    kind: Record
    tensor: int
    offset: int


class _Code:
    """The operands and forms of the file; `streams` has the other records, which come after."""

    def __init__(self, records: Iterator[Record]) -> None:
        self.values: list[_Value | Record] = []
        self.forms: list[Record] = []
        self.streams: Iterator[Record] = iter(())
        for record in records:
            kind = record[0]
            if kind == STREAM:
                self.streams = chain((record,), records)
                return
            if kind == FORM:
                self.forms.append(record)
            elif self.forms:
                raise ValueError("an operand comes after the forms")
            else:
                self.values.append(self.value(record))

    def value(self, record: Record) -> _Value | Record:
        """A pattern in full, also where the file tells it from an earlier one."""
        if record[0] == PATTERN:
            _, tensor, dtype, start, partitions, offset, dims, *dynamic = record
            return _Value((dtype, start, partitions, dims, *dynamic), tensor, offset)
        if record[0] != MOVED:
            return record
        _, back, tensor, offset = record
        last = self.values[-back]
        if back < 1 or not isinstance(last, _Value):
            raise ValueError("what is moved is not an access pattern")
        kind, its_tensor, its_offset = last
        return tuple.__new__(_Value, (kind, its_tensor + tensor, its_offset + offset))


def _roles(program: Program) -> dict[int, int]:
    """What tensors are to the caller, by number; all others are internal."""
    roles = dict.fromkeys(program.constants, CONSTANTS)
    roles |= {p.tensor.number: OUTPUTS for p in program.outputs}
    return roles | {p.tensor.number: INPUTS for p in program.inputs}


def _loop(loop: Loop, length: int) -> Record:
    """The record of a loop; registers as bounds stand in an array."""
    bounds = [(b.number,) if isinstance(b, Register) else b for b in (loop.start, loop.stop)]
    counter, condition = (
        None if register is None else register.number for register in (loop.counter, loop.condition)
    )
    return (LOOP, length, counter, *bounds, loop.step, condition)
