"""Proof of a file: its bytes, read back, hold exactly the schedule that was proven.

The sections are unpacked as docs/neff.md describes them and compared record by record with the
schedule's slots: row, attributes, operands with the addresses of their tensors, waits and signals.
No code of emit, write or the runner's reader is used. Whether integers are integers, rather than
equal numbers of another type, is left to the reader, which rejects all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain, islice, repeat, starmap
from operator import add
from typing import Any, NamedTuple

import msgpack

from nkic.base.source import CallChain
from nkic.base.text import printable
from nkic.machine.operands import Register, Row
from nkic.machine.targets import BUFFER_CODES, ENGINE_CODES, Buffer
from nkic.program.program import (
    AccessPattern,
    Dynamic,
    Instruction,
    Loop,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    Tensor,
    TensorParameter,
)
from nkic.prove.model import Finding

# docs/neff.md: the kinds of records, and the numbers of roles and of run-time offsets.
KERNEL, TENSOR, INPUT, OUTPUT, PLACED = range(5)
PATTERN, REGISTER, NUMBER, FORM, STREAM, INSTRUCTION, LOOP, SLOT, MOVED = range(9)
INPUTS, OUTPUTS, CONSTANTS, INTERNAL = range(4)
KINDS = {"scalar": 0, "vector": 1, "columns": 2}

Record = tuple[Any, ...]
# A tensor of the file: its record without the byte, shared by delta-encoded records, and its byte.
Declared = tuple[Record, int]
Sections = Mapping[str, bytes | memoryview]  # contents, by name


def prove_file(schedule: Schedule, sections: Sections) -> list[Finding]:
    """Return where the file of `sections` differs from `schedule`; empty means proven."""
    try:
        comparison = _Comparison(schedule.program, sections)
        comparison.all(schedule)
    except (ValueError, TypeError, LookupError, msgpack.UnpackException) as error:
        return [Finding("file", f"the file's sections cannot be read: {error}")]
    return comparison.findings


class _Comparison:
    """The comparison of one schedule with one file.

    `bound` maps a value of the file to the operand that was last found equal; `forms` maps the
    identities of a row and attributes, which the program keeps alive, to a form. `indices` maps the
    program's tensors to those of the file, and `taken` marks the latter, so that the mapping is one
    to one.
    """

    def __init__(self, program: Program, sections: Sections) -> None:
        self.program = program
        self.findings: list[Finding] = []
        layout = _records(sections["layout"])
        self.kernel = next(layout, ())
        self.declared, self.ports = _declared(layout)
        interned: dict[str, str] = {}  # interns equal names
        self.names = [interned.setdefault(name, name) for name, _ in _records(sections["debug"])]
        self.code = _Code(_records(sections["code"]))
        record = msgpack.unpackb(sections["const"], use_list=False)
        self.contents = record if isinstance(record, tuple) else ()
        self.bound: dict[int, object] = {0: None}
        self.forms: dict[tuple[int, int], int] = {}
        # by identity of `_Value.kind`: the equal part of a pattern
        self.alike: dict[int, Record] = {}
        self.taken = bytearray(len(self.declared))
        self.indices: dict[int, int] = {}
        roles = dict.fromkeys(program.constants, CONSTANTS)
        roles |= {p.tensor.number: OUTPUTS for p in program.outputs}
        self.roles = roles | {p.tensor.number: INPUTS for p in program.inputs}
        self.core = 0
        # by form: the operands of its previous instruction in the stream
        self.before: dict[int, tuple[int, ...]] = {}

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
            records = islice(self.code.streams, head[4])
            self.stream(stream, records)
            for _ in records:  # a stream that differs: skip to the next one
                pass
        if next(self.code.streams, None) is not None:
            self.complain("the file has other streams")
        self.core = 0
        self.parameters("inputs", INPUT, program.inputs)
        self.parameters("outputs", OUTPUT, program.outputs)
        self.constants()

    def stream(self, stream: Stream, records: Iterator[Record]) -> None:
        """Compare the records with the stream's items, up to the first difference."""
        self.before = {}
        try:
            self.items(stream.items, chain(records, repeat(())), 0)
        except _Differs as differs:
            at, one = differs.args
            name = one.row.name if isinstance(one, Instruction) else "slot or loop"
            text = f"stream {stream.id}: record {at} differs from the proven {name}"
            self.complain(text, one.at if one is not None else None)
            return
        if left := sum(1 for _ in records):
            self.complain(f"stream {stream.id}: {left} records too many")

    def items(self, items: Sequence[StreamItem], records: Iterator[Record], at: int) -> int:
        """Compare `items` with records, the next being number `at`; return the next number."""
        for item, record in zip(items, records, strict=False):  # stops before it takes a record
            index, at = at, at + 1
            if isinstance(item, Slot):
                matches = self.slot(item, record)
            else:
                at = self.items(item.items, records, at)
                matches = repr(_loop(item.loop, at - index - 1)) == repr(record)
            if not matches:
                raise _Differs(index, item[0] if isinstance(item, Slot) else item.loop)
        return at

    def slot(self, slot: Slot, record: Record) -> bool:
        instruction, waits, signals = slot
        pairs = waits[0] if len(waits) == 1 else tuple(chain.from_iterable(waits))
        if instruction is None:
            return record == (SLOT, pairs, signals)
        if len(record) != 5:
            return False
        kind, form, operands, actual_waits, actual_signals = record
        if kind != INSTRUCTION or actual_waits != pairs or actual_signals != signals:
            return False
        previous = self.before.get(form, ())
        if len(previous) == len(operands):
            operands = tuple(map(add, previous, operands))
        self.before[form] = operands
        row, expected_operands, attributes = instruction[:3]
        is_known = self.forms.get((id(row), id(attributes))) == form
        if not is_known and not self.form(row, attributes, form):
            return False
        bound = self.bound.get
        for expected, actual in zip(expected_operands, operands, strict=False):
            is_bound = bound(actual, self) is expected
            if not is_bound and not self.operand(expected, actual, operands):
                return False
        return len(operands) >= len(expected_operands)

    def form(self, row: Row, attributes: tuple[Any, ...], form: int) -> bool:
        """Compare a form by repr, since 1, 1.0, True and -0.0 are different attributes."""
        actual = self.code.forms[form] if form >= 0 else ()
        if actual[:2] != (FORM, row.opcode) or repr(actual[2:]) != repr((attributes,)):
            return False
        self.forms[id(row), id(attributes)] = form
        return True

    def operand(self, expected: object, actual: int, operands: tuple[int, ...]) -> bool:
        """Return whether value `actual` of the file, one of `operands`, is `expected`.

        None is value 0.
        """
        record = self.code.values[actual - 1] if expected is not None and actual > 0 else ()
        if isinstance(expected, AccessPattern):
            if not isinstance(record, _Value) or not self.pattern(expected, record):
                return False
            # The operand index of the offset differs by instruction.
            if expected.dynamic is not None:
                return self.dynamic(expected.dynamic, record.kind[4:], operands)
            matches = len(record.kind) == 4
        elif isinstance(expected, Register):
            matches = record == (REGISTER, expected.number)
        else:  # 1, 1.0, True and -0.0 are different numbers
            matches = record[:1] == (NUMBER,) and repr(record[1:]) == repr((expected,))
        if matches:
            self.bound[actual] = expected
        return matches

    def pattern(self, expected: AccessPattern, actual: _Value) -> bool:
        """Compare everything but a run-time offset."""
        kind, actual_tensor, actual_offset = actual
        tensor, dtype, start, partitions, offset, dims, _ = expected
        shared = (dtype, start, partitions, dims)
        if self.alike.get(id(kind)) != shared:
            if kind[:4] != (dtype.code, start, partitions, tuple(chain.from_iterable(dims))):
                return False
            self.alike[id(kind)] = shared
        if offset != actual_offset:
            return False
        is_mapped = self.indices.get(tensor.number) == actual_tensor
        return is_mapped or self.tensor(tensor, actual_tensor)

    def dynamic(self, expected: Dynamic, actual: Record, operands: tuple[int, ...]) -> bool:
        if len(actual) != 5:
            return False
        kind, source, stride, limit, axis = expected
        index = actual[1]
        if actual != (KINDS[kind], index, stride, limit, axis) or index not in range(len(operands)):
            return False
        is_bound = self.bound.get(operands[index], self) is source
        return is_bound or self.operand(source, operands[index], operands)

    def tensor(self, expected: Tensor, index: int) -> bool:
        """Return whether tensor `index` of the file equals `expected`, including its address."""
        number, mapped = expected.number, self.indices.get(expected.number)
        if mapped is not None:
            return mapped == index
        if not 0 <= index < len(self.declared) or self.taken[index]:
            return False
        named = self.names[index] in (expected.name, printable(expected.name))
        if self.declared[index] != self.expected(expected) or not named:
            return False
        self.taken[index], self.indices[number] = True, index
        return True

    def expected(self, tensor: Tensor) -> Declared:
        """Return what the file must declare for `tensor`."""
        number, buffer = tensor.number, tensor.buffer
        core = -1 if buffer is Buffer.SHARED_HBM else self.core
        role = self.roles.get(number, INTERNAL)
        partition, byte = self.program.addresses.get(number, (0, 0))
        code = BUFFER_CODES[buffer]
        return (TENSOR, tensor.dtype.code, tensor.shape, code, core, role, partition), byte

    def parameters(self, what: str, kind: int, expected: Sequence[TensorParameter]) -> None:
        actual = [record[1:] for record in self.ports if record[0] == kind]
        names = [printable(name) for name, _ in expected] == [name for name, _ in actual]
        if not names or not all(
            self.tensor(t, i) for (_, t), (_, i) in zip(expected, actual, strict=True)
        ):
            self.complain(f"the file has other {what}")

    def constants(self) -> None:
        by_tensor = dict(zip(self.contents[::2], self.contents[1::2], strict=True))
        for number, data in self.program.constants.items():
            if number in self.indices and by_tensor.get(self.indices[number]) != data:
                self.complain(f"the file has another content for constant %{number}")

    def complain(self, problem: str, at: CallChain | None = None) -> None:
        self.findings.append(Finding("file", problem, at))


class _Differs(Exception):
    """A record differs from the schedule's item at its position."""


def _records(data: bytes | memoryview) -> Iterator[Record]:
    """Yield the records of a section one by one, which saves several times their size."""
    unpacker = msgpack.Unpacker(BytesIO(data), use_list=False)
    count = unpacker.read_array_header()
    yield from starmap(unpacker.unpack, repeat((), count))
    if unpacker.tell() != len(data):
        raise ValueError("bytes follow the last record")


def _declared(records: Iterator[Record]) -> tuple[list[Declared], list[Record]]:
    """Return the tensors, with delta-encoded ones resolved, and the other records."""
    tensors: list[Declared] = []
    others: list[Record] = []
    for record in records:
        if record[0] == TENSOR:
            tensors.append((record[:-1], record[-1]))
        elif record[0] == PLACED:
            _, back, step = record
            kind, byte = tensors[-back]
            if back < 1 or others:
                raise ValueError("the base of a placed tensor is not a tensor")
            tensors.append((kind, byte + step))
        else:
            others.append(record)
    return tensors, others


class _Value(NamedTuple):
    """An access pattern of the file.

    `kind` is one object for a pattern and those delta-encoded from it: dtype, start, partitions,
    dimensions, and the run-time offset, if any.
    """

    kind: Record
    tensor: int
    offset: int


class _Code:
    """The operands and forms of the file; `streams` yields the records after them."""

    def __init__(self, records: Iterator[Record]) -> None:
        self.values: list[_Value | Record] = []
        self.forms: list[Record] = []
        self.streams: Iterator[Record] = iter(())
        values, new = self.values, tuple.__new__
        for record in records:
            kind = record[0]
            if kind == MOVED and not self.forms:
                _, back, tensor, offset = record
                last = values[-back]
                if back < 1 or not isinstance(last, _Value):
                    raise ValueError("the base of a moved pattern is not an access pattern")
                shared, its_tensor, its_offset = last
                values.append(new(_Value, (shared, its_tensor + tensor, its_offset + offset)))
            elif kind == STREAM:
                self.streams = chain((record,), records)
                return
            elif kind == FORM:
                self.forms.append(record)
            elif self.forms:
                raise ValueError("an operand comes after the forms")
            else:
                values.append(_pattern(record) if kind == PATTERN else record)


def _pattern(record: Record) -> _Value:
    _, tensor, dtype, start, partitions, offset, dims, *dynamic = record
    return _Value((dtype, start, partitions, dims, *dynamic), tensor, offset)


def _loop(loop: Loop, length: int) -> Record:
    """Return the record of a loop; a register as bound is wrapped in an array."""
    bounds = [(b.number,) if isinstance(b, Register) else b for b in (loop.start, loop.stop)]
    counter, condition = (
        None if register is None else register.number for register in (loop.counter, loop.condition)
    )
    return (LOOP, length, counter, *bounds, loop.step, condition)
