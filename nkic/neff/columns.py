"""The streams of an executable in columns, so that stages handle what items share only once.

Most items share everything but their operands, and most operands are patterns that differ only in
tensor and offset. emit makes columns only; the records are made when they are first read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from nkic.machine.dtypes import DType
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    OperandRecord,
    PatternRecord,
    Record,
)


@dataclass(frozen=True, eq=False, slots=True)
class Head:
    """All fields of an item but its operands and iteration; `count` is their number.

    Heads are compared by identity: equal heads are mostly, but not always, one object.
    """

    row: Row | None
    attributes: tuple[Any, ...]
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    place: int
    count: int

    def record(self, operands: tuple[OperandRecord, ...], iteration: int = -1) -> InstructionRecord:
        """Return the record of an item with this head."""
        fields = (self.row, operands, self.attributes, self.waits, self.signals, self.place)
        return tuple.__new__(InstructionRecord, (*fields, iteration))


class Operands:
    """The distinct operands of streams, numbered in order of first use; number 0 is None.

    A pattern is a `shape`, a tensor and an offset. A shape is a number, and `patterns` has the
    first pattern of each; other operands have shape -1, and are found in `others`.
    """

    def __init__(self) -> None:
        self.shapes = [-1]
        self.tensors = [-1]
        self.offsets = [0]
        self.patterns: list[PatternRecord] = []
        self.others: dict[int, Register | float | int | None] = {0: None}
        self._shape_of: dict[tuple[object, ...], int] = {}
        self._records: list[OperandRecord] | None = None

    def add(self, operand: OperandRecord) -> int:
        """Append an operand, and return its number."""
        if isinstance(operand, PatternRecord):
            return self.pattern(*operand)
        self.shapes.append(-1)
        self.tensors.append(-1)
        self.offsets.append(0)
        number = len(self.shapes) - 1
        self.others[number] = operand
        return number

    def pattern(
        self,
        tensor: int,
        dtype: DType,
        start: int,
        partitions: int,
        offset: int,
        dims: tuple[tuple[int, int], ...],
        dynamic: OffsetRecord | None,
    ) -> int:
        """Append the pattern with these fields, and return its number."""
        key = (dtype.code, start, partitions, dims, dynamic)
        shape = self._shape_of.get(key)
        if shape is None:
            shape = self._shape_of[key] = len(self.patterns)
            self.patterns.append(
                PatternRecord(tensor, dtype, start, partitions, offset, dims, dynamic)
            )
        self.shapes.append(shape)
        self.tensors.append(tensor)
        self.offsets.append(offset)
        return len(self.shapes) - 1

    def record(self, number: int) -> OperandRecord:
        """Return a new record of an operand, or its only one."""
        shape = self.shapes[number]
        if shape < 0:
            return self.others[number]
        _, dtype, start, partitions, _, dims, dynamic = self.patterns[shape]
        fields = (self.tensors[number], dtype, start, partitions, self.offsets[number])
        return tuple.__new__(PatternRecord, (*fields, dims, dynamic))

    @property
    def records(self) -> list[OperandRecord]:
        """The records of all operands, one object for each, made at the first use."""
        if self._records is None:
            self._records = list(map(self.record, range(len(self.shapes))))
        return self._records


@dataclass(eq=False)
class Items(Sequence[Record]):
    """The items of a stream in columns. As a sequence, it is that of their records.

    `references` has the numbers of all operands, `iterations` those of all items.
    """

    operands: Operands
    heads: list[Head | LoopRecord] = field(default_factory=list)
    references: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    _records: tuple[Record, ...] | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the items, made at the first use."""
        if self._records is None:
            self._records = tuple(self._made())
        return self._records

    def _made(self) -> Iterator[Record]:
        references = map(self.operands.records.__getitem__, self.references)
        for head, iteration in zip(self.heads, self.iterations, strict=True):
            if isinstance(head, LoopRecord):
                yield head
            else:
                operands = tuple([next(references) for _ in range(head.count)])
                yield head.record(operands, iteration)

    def append(self, head: Head | LoopRecord, iteration: int = -1) -> None:
        self.heads.append(head)
        self.iterations.append(iteration)

    def extend(self, loop: LoopRecord, body: Items) -> None:
        """Append a loop and the items of its body."""
        self.append(loop)
        self.heads += body.heads
        self.references += body.references
        self.iterations += body.iterations

    def __len__(self) -> int:
        return len(self.heads)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...

    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __eq__(self, other: object) -> bool:
        return self.records == (other.records if isinstance(other, Items) else other)

    def __hash__(self) -> int:
        return hash(self.records)


class Columns(NamedTuple):
    """The operands and streams of an executable."""

    operands: Operands
    streams: list[Items]


def columns_of(executable: Executable) -> Columns:
    """Return the columns of an executable, which are made of its records unless emit made them."""
    items = [stream.items for stream in executable.streams]
    made = [one for one in items if isinstance(one, Items)]
    if len(made) == len(items) and len({id(one.operands) for one in made}) == 1:
        return Columns(made[0].operands, made)
    converter = _Converter()
    return Columns(converter.operands, list(map(converter.items, items)))


class _Converter:
    """Converts records to columns. Operands and attributes are found by identity."""

    def __init__(self) -> None:
        self.operands = Operands()
        self.numbers = {id(None): 0}
        self.heads: dict[tuple[object, ...], Head] = {}

    def items(self, records: Sequence[Record]) -> Items:
        items = Items(self.operands)
        items._records = tuple(records)
        for record in items._records:
            if isinstance(record, LoopRecord):
                items.append(record)
            else:
                items.append(self.head(record), record.iterations)
                items.references += map(self.number, record.operands)
        return items

    def head(self, record: InstructionRecord) -> Head:
        row, operands, attributes, waits, signals, place, _ = record
        key = (id(row), id(attributes), waits, signals, place, len(operands))
        head = self.heads.get(key)
        if head is None:
            head = Head(row, attributes, waits, signals, place, len(operands))
            self.heads[key] = head
        return head

    def number(self, operand: OperandRecord) -> int:
        number = self.numbers.get(id(operand))
        if number is None:
            number = self.numbers[id(operand)] = self.operands.add(operand)
        return number
