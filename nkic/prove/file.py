"""Proof of a file: its bytes, read again, hold just the schedule that was proven.

The records are compared one by one with the schedule's slots: row, attributes, operands with the
addresses of their tensors, waits and signals. Records come as the plain tuples that they are;
nothing of how emit and write made them is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nkic.base.source import CallChain
from nkic.ir.program import Instruction, Loop, Program
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem
from nkic.ir.tensors import AccessPattern, Dynamic, Tensor
from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.prove.model import Finding

Pairs = tuple[tuple[int, int], ...]
# kind, operand that holds the offset, stride, limit, axis
DynamicRecord = tuple[str, int, int, int, int]
# tensor, dtype, start, partitions, offset, dims
Pattern = tuple[int, DType, int, int, int, Pairs, DynamicRecord | None]
# row, operands, attributes, waits, signals, place
ItemRecord = tuple[Row | None, tuple[Any, ...], tuple[Any, ...], Pairs, tuple[int, ...], int]
Bound = int | Register
# length, counter, start, stop, step, condition, place
LoopRecord = tuple[int, Register | None, Bound, Bound, int, Register | None, int]
Records = Sequence[ItemRecord | LoopRecord]
StreamRecord = tuple[int, Engine, int, Records]  # core, engine, queue
# name, dtype, shape, buffer, core, role, partition, byte, place
TensorRecord = tuple[str, DType, tuple[int, ...], Buffer, int, str, int, int, int]
PortRecord = tuple[str, int]  # name, tensor


@dataclass(frozen=True)
class File:
    """What was read from the bytes of a file."""

    target: str
    cores: int
    tensors: Sequence[TensorRecord]
    inputs: Sequence[PortRecord]
    outputs: Sequence[PortRecord]
    streams: Sequence[StreamRecord]
    constants: Mapping[int, bytes]


def prove_file(schedule: Schedule, file: File) -> list[Finding]:
    """Where `file` differs from `schedule`; empty means proven."""
    comparison = _Comparison(schedule.program, file)
    comparison.all(schedule)
    return comparison.found


class _Comparison:
    """One schedule against one file.

    What is one object on both sides is compared once: `same` has what was found equal to the
    program's object of that identity, `tensors` the program's tensors by the file's and `indices`
    the other way round: each is one of the other's. Program and file keep the objects alive.
    """

    def __init__(self, program: Program, file: File) -> None:
        self.program = program
        self.file = file
        self.found: list[Finding] = []
        self.same: dict[int, object] = {}
        self.tensors: dict[int, int] = {}
        self.indices: dict[int, int] = {}
        self.roles = _roles(program)
        self.core = 0

    def all(self, schedule: Schedule) -> None:
        program, file = self.program, self.file
        if (file.target, file.cores) != (program.target.name, len(schedule.cores)):
            self.complain(f"the file is for {file.cores} cores of {file.target}")
        wanted = [(core, s) for core, streams in enumerate(schedule.cores) for s in streams]
        ids = [(core, stream.id.engine, stream.id.queue) for core, stream in wanted]
        if [record[:3] for record in file.streams] != ids:
            self.complain("the file has other streams")
            return
        for (core, stream), (_, _, _, records) in zip(wanted, file.streams, strict=True):
            self.core = core
            self.stream(stream, records)
        self.core = 0
        self.ports("inputs", [(p.name, p.tensor) for p in program.inputs], file.inputs)
        self.ports("outputs", [(p.name, p.tensor) for p in program.outputs], file.outputs)
        self.constants()

    def stream(self, stream: Stream, records: Records) -> None:
        """Whether the records are the stream's items, one by one, up to the first that is not."""
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

    def items(self, items: Sequence[StreamItem], records: Records, at: int) -> int:
        """Compares `items` with the records from `at` on; where those of others begin."""
        count = len(records)
        for item in items:
            here, record = at, records[at] if at < count else None
            at += 1
            if isinstance(item, Slot):
                fits = record is not None and len(record) == 6 and self.slot(item, record)
            else:
                at = self.items(item.items, records, at)
                fits = record is not None and _same_loop(item.loop, at - here - 1, record)
            if not fits:
                raise _Differs(here, item[0] if isinstance(item, Slot) else item.loop)
        return at

    def slot(self, slot: Slot, record: ItemRecord) -> bool:
        one, waits, signals = slot
        row, operands, attributes, its_waits, its_signals, _ = record
        if its_waits != waits or its_signals != signals:
            return False
        if one is None:
            return row is None and not operands
        own_row, own_operands, own_attributes = one[:3]
        if row is not own_row or len(operands) < len(own_operands):
            return False
        same = self.same
        known = same.get(id(own_attributes)) is attributes
        if not known and not self.values(own_attributes, attributes):
            return False
        for own, its in zip(own_operands, operands, strict=False):
            if same.get(id(own), same) is not its and not self.operand(own, its, operands):
                return False
        return True

    def operand(self, own: object, its: Any, operands: tuple[Any, ...]) -> bool:
        if type(own) is not AccessPattern:
            return self.values(own, its)
        if not isinstance(its, tuple) or len(its) != 7 or its[1:6] != own[1:6]:
            return False
        if not self.tensor(own.tensor, its[0]):
            return False
        if own.dynamic is not None:  # where the offset stands is each instruction's own
            return self.dynamic(own.dynamic, its[6], operands)
        if its[6] is not None:
            return False
        self.same[id(own)] = its
        return True

    def dynamic(self, own: Dynamic, its: DynamicRecord | None, operands: tuple[Any, ...]) -> bool:
        if its is None:
            return False
        kind, source, stride, limit, axis = own
        its_kind, index, *rest = its
        if its_kind != kind or rest != [stride, limit, axis] or not 0 <= index < len(operands):
            return False
        return self.operand(source, operands[index], operands)

    def values(self, own: object, its: object) -> bool:
        """1, 1.0, True and -0.0, which may be equal to Python, are not the same."""
        if repr(own) != repr(its):
            return False
        self.same[id(own)] = its
        return True

    def tensor(self, own: Tensor, index: int) -> bool:
        """Whether tensor `index` of the file is `own`: what it is, and where."""
        number, known = own.number, self.indices.get(own.number)
        if known is not None:
            return known == index
        if index in self.tensors or not 0 <= index < len(self.file.tensors):
            return False
        if self.file.tensors[index][:8] != self.expected(own):
            return False
        self.tensors[index], self.indices[number] = number, index
        return True

    def expected(self, own: Tensor) -> tuple[object, ...]:
        """What the file must say of `own`, its place in the source left out."""
        number, buffer = own.number, own.buffer
        core = -1 if buffer is Buffer.SHARED_HBM else self.core
        role = self.roles.get(number, "internal")
        address = self.program.addresses.get(number, (0, 0))
        return (own.name, own.dtype, own.shape, buffer, core, role, *address)

    def ports(
        self, kind: str, own: Sequence[tuple[str, Tensor]], its: Sequence[PortRecord]
    ) -> None:
        names = [name for name, _ in own] == [name for name, _ in its]
        if not names or not all(self.tensor(t, i) for (_, t), (_, i) in zip(own, its, strict=True)):
            self.complain(f"the file has other {kind}")

    def constants(self) -> None:
        tensors = self.tensors
        found = {tensors.get(index, -1): data for index, data in self.file.constants.items()}
        used = set(tensors.values())
        for number, data in self.program.constants.items():
            if number in used and found.get(number) != data:
                self.complain(f"the file has another content for constant %{number}")

    def complain(self, what: str, at: CallChain | None = None) -> None:
        self.found.append(Finding("file", what, at))


class _Differs(Exception):
    """A record that is not the item, of the schedule, that stands at its position."""


def _roles(program: Program) -> dict[int, str]:
    """What tensors are to the caller, by number; all others are internal."""
    roles = dict.fromkeys(program.constants, "constant")
    roles |= {p.tensor.number: "output" for p in program.outputs}
    return roles | {p.tensor.number: "input" for p in program.inputs}


def _same_loop(own: Loop, length: int, record: ItemRecord | LoopRecord) -> bool:
    ours = (length, own.counter, own.start, own.stop, own.step, own.condition)
    return len(record) == 7 and repr(ours) == repr(record[:6])
