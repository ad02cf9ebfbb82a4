"""Proof of a file: its bytes, read again, hold just the schedule that was proven.

The sections are unpacked as docs/neff.md describes them and compared record by record with the
schedule's slots: row, attributes, operands with the addresses of their tensors, waits and signals.
Nothing of how emit and write made them, or of how the runner reads them, is asked. That integers
are integers, and not equal numbers of another type, is for the reader: it refuses all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import add
from typing import Any

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
    the program keeps alive; `forms` the same of rows and attributes. `tensors` are the program's
    by the file's and `indices` the other way round: each is one of the other's.
    """

    def __init__(self, program: Program, sections: Sections) -> None:
        self.program = program
        self.found: list[Finding] = []
        self.kernel, *layout = _placed(_unpacked(sections, "layout"))
        self.declared = [record for record in layout if record[0] == TENSOR]
        self.names = _unpacked(sections, "debug")
        self.ports = [record for record in layout if record[0] != TENSOR]
        self.code = _unmoved(_unpacked(sections, "code"))
        self.start = next((n for n, one in enumerate(self.code) if one[0] == STREAM), 0)
        self.contents = _unpacked(sections, "const")
        self.same: dict[int, int] = {id(None): 0}
        self.forms: dict[tuple[int, int], int] = {}
        self.first_form = next((n for n, one in enumerate(self.code) if one[0] == FORM), 0)
        self.tensors: dict[int, int] = {}
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
        at = self.start
        for core, stream in wanted:
            head: Record = self.code[at] if at < len(self.code) else ()
            ids = (STREAM, core, ENGINE_CODES[stream.id.engine], stream.id.queue)
            if head[:4] != ids:
                self.complain("the file has other streams")
                return
            self.core = core
            self.stream(stream, self.code[at + 1 : at + 1 + head[4]])
            at += 1 + head[4]
        if wanted and at != len(self.code):
            self.complain("the file has other streams")
        self.core = 0
        self.parameters("inputs", INPUT, program.inputs)
        self.parameters("outputs", OUTPUT, program.outputs)
        self.constants()

    def stream(self, stream: Stream, records: Sequence[Record]) -> None:
        """Whether the records are the stream's items, one by one, up to the first that is not."""
        self.before = {}
        try:
            at = self.items(stream.items, records, 0)
        except _Differs as differs:
            at, one = differs.args
            name = one.row.name if isinstance(one, Instruction) else "a slot or loop"
            text = f"stream {stream.id}: record {at} is not {name}, which was proven"
            self.complain(text, one.at if one is not None else None)
            return
        if at < len(records):
            self.complain(f"stream {stream.id}: {len(records) - at} records too many")

    def items(self, items: Sequence[StreamItem], records: Sequence[Record], at: int) -> int:
        """Compares `items` with the records from `at` on; where those of others begin."""
        count = len(records)
        for item in items:
            here, record = at, records[at] if at < count else ()
            at += 1
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
        its = self.code[self.first_form + form] if form >= 0 else ()
        if its[:2] != (FORM, row.opcode) or repr(its[2:]) != repr((attributes,)):
            return False
        self.forms[id(row), id(attributes)] = form
        return True

    def operand(self, own: object, its: int, operands: tuple[int, ...]) -> bool:
        """Whether value `its` of the file, one of `operands`, is `own`. None is value 0."""
        record = self.code[its - 1] if own is not None and its > 0 else ()
        if isinstance(own, AccessPattern):
            if len(record) < 7 or not self.pattern(own, record):
                return False
            if own.dynamic is not None:  # where the offset stands is each instruction's own
                return self.dynamic(own.dynamic, record[7:], operands)
            fits = len(record) == 7
        elif isinstance(own, Register):
            fits = record == (REGISTER, own.number)
        else:  # 1, 1.0, True and -0.0 are not the same number
            fits = record[:1] == (NUMBER,) and repr(record[1:]) == repr((own,))
        if fits:
            self.same[id(own)] = its
        return fits

    def pattern(self, own: AccessPattern, record: Record) -> bool:
        """All but a run-time offset."""
        tensor, dtype, start, partitions, offset, dims, _ = own
        flat = tuple(chain.from_iterable(dims))
        kind, its_tensor, *rest = record[:7]
        return (
            kind == PATTERN
            and rest == [dtype.code, start, partitions, offset, flat]
            and self.tensor(tensor, its_tensor)
        )

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
        if index in self.tensors or not 0 <= index < len(self.declared):
            return False
        if self.declared[index] != self.expected(own) or self.names[index][0] != own.name:
            return False
        self.tensors[index], self.indices[number] = number, index
        return True

    def expected(self, own: Tensor) -> Record:
        """What the file must declare for `own`."""
        number, buffer = own.number, own.buffer
        core = -1 if buffer is Buffer.SHARED_HBM else self.core
        role = self.roles.get(number, INTERNAL)
        address = self.program.addresses.get(number, (0, 0))
        return (TENSOR, own.dtype.code, own.shape, BUFFER_CODES[buffer], core, role, *address)

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


def _placed(records: Record) -> Record:
    """Tensors in full that the file tells from earlier ones."""
    found = list[Record]()
    for record in records:
        if record[0] == PLACED:
            _, back, step = record
            like = found[-back]
            if back < 1 or like[0] != TENSOR:
                raise ValueError("what a tensor is like is not a tensor")
            record = (*like[:-1], like[-1] + step)
        found.append(record)
    return tuple(found)


def _unmoved(records: Record) -> Record:
    """Patterns in full that the file tells from earlier ones."""
    found = list[Record]()
    for record in records:
        if record[0] == MOVED:
            _, back, tensor, offset = record
            last = found[-back]
            if back < 1 or last[0] != PATTERN:
                raise ValueError("what is moved is not an access pattern")
            record = (PATTERN, last[1] + tensor, *last[2:5], last[5] + offset, *last[6:])
        found.append(record)
    return tuple(found)


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
