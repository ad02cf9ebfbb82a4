"""Proof of a file: its bytes, read again, hold just the schedule that was proven.

The records are compared one by one with the schedule's slots: row, attributes, operands with the
addresses of their tensors, waits and signals. Records come as the plain tuples that they are;
nothing of how emit and write made them is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

from nkic.base.source import CallChain
from nkic.ir.program import Instruction, Loop, Program
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.memory import Address, Buffer
from nkic.machine.operands import Row
from nkic.prove.model import Finding

Pairs = tuple[tuple[int, int], ...]
Dynamic = tuple[str, int, int, int, int]  # kind, operand that holds the offset, stride, limit, axis
# tensor, dtype, start, partitions, offset, dims
Pattern = tuple[int, DType, int, int, int, Pairs, Dynamic | None]
# row, operands, attributes, waits, signals, place
ItemRecord = tuple[Row | None, tuple[Any, ...], tuple[Any, ...], Pairs, tuple[int, ...], int]
Bound = int | Register
# length, counter, start, stop, step, condition, place
LoopRecord = tuple[int, Register | None, Bound, Bound, int, Register | None, int]
StreamRecord = tuple[int, Engine, int, Sequence[ItemRecord | LoopRecord]]  # core, engine, queue
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


@dataclass
class _Comparison:
    program: Program
    file: File
    found: list[Finding] = field(default_factory=list)
    # What is one object on both sides is compared once; program and file keep them alive.
    equal: dict[tuple[int, int], bool] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)  # tensors of the program, by the file's
    core: int = 0

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

    def stream(self, stream: Stream, records: Sequence[ItemRecord | LoopRecord]) -> None:
        """Whether the records are the stream's items, one by one, up to the first that is not."""
        at = 0
        for item in _flat(stream.items):
            record = records[at] if at < len(records) else None
            if record is None or not self.item(item, record):
                one = item[0]
                name = one.row.name if isinstance(one, Instruction) else "a slot or loop"
                text = f"stream {stream.id}: record {at} is not {name}, which was proven"
                self.complain(text, one.at if one is not None else None)
                return
            at += 1
        if at < len(records):
            self.complain(f"stream {stream.id}: {len(records) - at} records too many")

    def item(self, item: Slot | tuple[Loop, int], record: ItemRecord | LoopRecord) -> bool:
        if not isinstance(item, Slot):
            return _is_loop(record) and _same_loop(*item, record)
        if _is_loop(record):
            return False
        one, waits, signals = item
        row, operands, attributes, its_waits, its_signals, _ = cast(ItemRecord, record)
        if its_waits != waits or its_signals != signals:
            return False
        if one is None:
            return row is None and not operands
        if row is not one.row or len(operands) < len(one.operands):
            return False
        if not self.values(one.attributes, attributes):
            return False
        equal = self.equal
        for own, its in zip(one.operands, operands, strict=False):
            known = equal.get((id(own), id(its)))
            if known is None or (type(own) is AccessPattern and own.dynamic is not None):
                known = self.operand(own, its, operands)
            if not known:
                return False
        return True

    def operand(self, own: object, its: Any, operands: tuple[Any, ...]) -> bool:
        if type(own) is not AccessPattern:
            return self.values(own, its)
        found = isinstance(its, tuple) and len(its) == 7 and self.pattern(own, its, operands)
        self.equal[id(own), id(its)] = found
        return found

    def pattern(self, own: AccessPattern, its: Pattern, operands: tuple[Any, ...]) -> bool:
        tensor, dtype, start, partitions, offset, dims, dynamic = its
        if (dtype, start, partitions, offset, dims) != own[1:6]:
            return False
        if not self.tensor(own.tensor, tensor) or (dynamic is None) != (own.dynamic is None):
            return False
        if own.dynamic is None or dynamic is None:
            return True
        kind, source, stride, limit, axis = own.dynamic
        its_kind, index, *rest = dynamic
        if its_kind != kind or rest != [stride, limit, axis] or not 0 <= index < len(operands):
            return False
        return self.operand(source, operands[index], operands)

    def values(self, own: object, its: object) -> bool:
        """1, 1.0, True and -0.0, which may be equal to Python, are not the same."""
        key = (id(own), id(its))
        if key not in self.equal:
            self.equal[key] = repr(own) == repr(its)
        return self.equal[key]

    def tensor(self, own: Tensor, index: int) -> bool:
        """Whether tensor `index` of the file is `own`: what it is, and where."""
        if index not in self.same:
            if not 0 <= index < len(self.file.tensors):
                return False
            if not self.same_place(own, self.file.tensors[index]):
                return False
            self.same[index] = own.number
        return self.same[index] == own.number

    def same_place(self, own: Tensor, record: TensorRecord) -> bool:
        name, dtype, shape, buffer, core, role, *address, _ = record
        its_core = -1 if buffer is Buffer.SHARED_HBM else self.core
        there = self.program.addresses.get(own.number, Address(0, 0))
        return (
            (name, dtype, shape, buffer) == (own.name, own.dtype, own.shape, own.buffer)
            and core == its_core
            and tuple(address) == tuple(there)
            and role == self.program.role(own).value
        )

    def ports(
        self, kind: str, own: Sequence[tuple[str, Tensor]], its: Sequence[PortRecord]
    ) -> None:
        names = [name for name, _ in own] == [name for name, _ in its]
        if not names or not all(self.tensor(t, i) for (_, t), (_, i) in zip(own, its, strict=True)):
            self.complain(f"the file has other {kind}")

    def constants(self) -> None:
        found = {self.same.get(index, -1): data for index, data in self.file.constants.items()}
        for number, data in self.program.constants.items():
            if number in self.same.values() and found.get(number) != data:
                self.complain(f"the file has another content for constant %{number}")

    def complain(self, what: str, at: CallChain | None = None) -> None:
        self.found.append(Finding("file", what, at))


def _is_loop(record: ItemRecord | LoopRecord) -> TypeGuard[LoopRecord]:
    return len(record) == 7


def _same_loop(own: Loop, length: int, record: LoopRecord) -> bool:
    ours = (length, own.counter, own.start, own.stop, own.step, own.condition)
    return repr(ours) == repr(record[:6])


def _flat(items: Sequence[StreamItem]) -> Iterator[Slot | tuple[Loop, int]]:
    """Slots and loops as records follow one another; a loop with how many are inside it."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            inside = list(_flat(item.items))
            yield item.loop, len(inside)
            yield from inside
