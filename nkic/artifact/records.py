"""The contents of an executable as plain records, written by `emit` and read by the runner.

Records do not refer to the compiler's objects: tensors, streams and source places are indices into
tables of the same file, and `verify` checks every number before it is used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, overload

from nkic.base.source import SHIPPED, SourceFile, Span
from nkic.machine.dtypes import DType
from nkic.machine.operands import Attribute, Facts, Register, Row, Tile, trips
from nkic.machine.patterns import Pattern, RunTimeOffset
from nkic.machine.rules import allowed, is_number
from nkic.machine.targets import Buffer, Engine, Target


class TensorRecord(NamedTuple):
    """A tensor. `partition` and `byte` are its address on chip; both 0 in HBM.

    `core` is the core that owns it, -1 for shared HBM. `role` is input, output, constant or
    internal. `place` is the index of its declaration in `Executable.places`, -1 if unknown.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    buffer: Buffer
    core: int
    role: str
    partition: int
    byte: int
    place: int = -1

    @property
    def bytes(self) -> int:
        """The number of bytes per partition; in HBM, of the whole tensor."""
        return _bytes(self.shape, self.buffer.on_chip, self.dtype.size)


@lru_cache(maxsize=4096)
def _bytes(shape: tuple[int, ...], on_chip: bool, size: int) -> int:
    return prod(shape[1:] if on_chip else shape) * size


OffsetRecord = RunTimeOffset[int]


class PatternRecord(Pattern[int, int]):
    """An access pattern that refers to its tensor by index.

    The `source` of a run-time offset is the index of the operand that holds it, where hidden
    operands follow the row's own.
    """

    __slots__ = ()

    @property
    def standing(self) -> PatternRecord:
        """The pattern at offset 0, without the dimensions whose elements have an offset each."""
        return self if self.dynamic is None else self._replace(dims=self.fixed_dims, dynamic=None)

    def tile(self, tensor: TensorRecord, offsets: Tile | None = None) -> Tile:
        """Return the pattern as rules and costs see it.

        `tensor` is the pattern's tensor, and `offsets` the tile of its offsets. The start partition
        is the physical one.
        """
        _, dtype, start, partitions, _, dims, dynamic = self
        start += tensor.partition
        if dynamic is None:
            return Tile(tensor.buffer, dtype, start, partitions, dims)
        indexed = self.kind in ("vector", "columns")
        return Tile(tensor.buffer, dtype, start, partitions, dims, True, indexed, offsets)


OperandRecord = PatternRecord | Register | float | int | None


class InstructionRecord(NamedTuple):
    """One item of a stream. `row` None: an empty slot that only waits and signals.

    `operands` and `attributes` follow the row; hidden operands, which hold run-time offsets, come
    after the row's own. `place` is an index into `Executable.places`, `iterations` into
    `Executable.iterations`; -1 means none.
    """

    row: Row | None
    operands: tuple[OperandRecord, ...]
    attributes: tuple[Any, ...]
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    place: int
    iterations: int = -1


class LoopRecord(NamedTuple):
    """The head of a loop over the next `length` records of the stream (nested loops included).

    Counted: the register `counter` takes the values from start, below stop, by step; start and stop
    are ints or registers. Conditional: the loop runs while the register `condition` is not zero.
    """

    length: int
    counter: Register | None
    start: int | Register
    stop: int | Register
    step: int
    condition: Register | None
    place: int

    @property
    def trips(self) -> int | None:
        """The trip count; None if it is known only at run time."""
        return None if self.condition is not None else trips(self.start, self.stop, self.step)


Record = InstructionRecord | LoopRecord


class StreamRecord(NamedTuple):
    """An in-order stream of one core."""

    core: int
    engine: Engine
    queue: int
    items: Sequence[Record]

    @property
    def name(self) -> str:
        """The name used in messages and traces."""
        label = f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value
        return f"core{self.core}.{label}"

    def repeated(self) -> Iterator[tuple[Record, int]]:
        """Yield the items with the product of the enclosing loops' trip counts.

        A loop whose trip count is known only at run time counts as one iteration.
        """
        repeat, ends = 1, [(len(self.items), 1)]
        for index, item in enumerate(self.items):
            while index >= ends[-1][0] and len(ends) > 1:
                repeat = ends.pop()[1]
            yield item, repeat
            if isinstance(item, LoopRecord):
                ends.append((index + 1 + item.length, repeat))
                repeat *= 1 if item.trips is None else item.trips

    def instructions(self) -> Iterator[tuple[InstructionRecord, int]]:
        """Yield the same of the items that are instructions."""
        for item, repeat in self.repeated():
            if isinstance(item, InstructionRecord) and item.row is not None:
                yield item, repeat


class ParameterRecord(NamedTuple):
    """An input or output, with the name used in npz files."""

    name: str
    tensor: int


class PlaceRecord(NamedTuple):
    """A source place: file index, position, and the place of the caller (-1: none)."""

    file: int
    line: int
    column: int
    end_line: int
    end_column: int
    caller: int


class FileRecord(NamedTuple):
    """A source file: path relative to the project, sha256 in hex, text only if embedded."""

    path: str
    sha256: str
    text: str | None = None


@dataclass(frozen=True)
class Executable:
    """The contents of a whole file. `semaphores` and `registers` are counts per core.

    `arguments` describes the specialisation of the kernel, for information only. `meta` holds the
    producer and its flags.
    """

    name: str
    target: str
    cores: int
    semaphores: int
    registers: int
    tensors: tuple[TensorRecord, ...]
    inputs: tuple[ParameterRecord, ...]
    outputs: tuple[ParameterRecord, ...]
    streams: tuple[StreamRecord, ...]
    constants: Mapping[int, bytes] = field(default_factory=dict)
    places: tuple[PlaceRecord, ...] = ()
    files: tuple[FileRecord, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    iterations: tuple[str, ...] = ()  # of Python loops: "i=3 j=0"

    @property
    def sources(self) -> dict[str, SourceFile]:
        """The embedded source texts, by path. Paths from a file are never opened."""
        return {f.path: SourceFile(f.path, f.text) for f in self.files if f.text is not None}

    def facts(self, item: InstructionRecord, target: Target, engine: Engine) -> Facts:
        """Return `item` as the functions of the instruction table see it; it must have a row."""
        row = item.row
        if row is None:
            raise ValueError("an empty slot has no facts")
        operands = {
            name: self._seen(v, item) if isinstance(v, PatternRecord) else v
            for name, v in zip(row.operand_index, item.operands, strict=False)
        }
        named = dict(zip(row.attribute_index, item.attributes, strict=True))
        return Facts(target, operands, named, engine)

    def written(
        self, item: InstructionRecord, target: Target, engine: Engine
    ) -> dict[str, PatternRecord]:
        """Return the patterns that `item` writes, by operand name; none for an empty slot."""
        row = item.row
        if row is None:
            return {}
        facts = self.facts(item, target, engine)
        return {
            rule.name: operand
            for rule, operand in zip(row.operands, item.operands, strict=False)
            if isinstance(operand, PatternRecord) and row.access_of(rule, facts).writes
        }

    def _seen(self, operand: PatternRecord, item: InstructionRecord) -> Tile:
        offsets = None
        if operand.dynamic is not None:
            source = item.operands[operand.dynamic.source]
            if isinstance(source, PatternRecord):
                offsets = source.tile(self.tensors[source.tensor])
        return operand.tile(self.tensors[operand.tensor], offsets)


# ---- Checks of attribute values in files, shared by reader, writer and assembler ----------------

_NAN = struct.pack(">d", math.nan)


def canonical(value: float) -> float:
    """Return `value`, with any NaN replaced by the one that files may hold."""
    return math.nan if value != value else value


def is_canonical(value: Any) -> bool:
    """Return whether `value` is not a NaN other than the canonical one."""
    return type(value) is not float or value == value or struct.pack(">d", value) == _NAN


def is_operand_number(value: Any) -> bool:
    """Return whether an operand can be `value`: a canonical 64-bit integer or float."""
    return is_number(value) and is_canonical(value)


def is_allowed(attribute: Attribute, value: Any) -> bool:
    """Return whether `value` is canonical and of the attribute's kind. Rules may reject it."""
    return allowed(attribute, value) and is_canonical(value)


# ------------------------------------------------------------------------------------------------
# The streams of an executable in columns, so that stages handle what items share only once.
# Most items share everything but their operands, and most operands are patterns that differ only
# in tensor and offset. emit makes columns only; the records are made when they are first read.


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


# ---- Source places for messages: the user's own lines before those of nkic's library ------------


def frames(executable: Executable, place: int) -> list[int]:
    """Return `place` and the places of its callers that the file has, innermost first."""
    chain: list[int] = []
    places = executable.places
    while 0 <= place < len(places) and place not in chain:
        chain.append(place)
        place = places[place].caller
    return chain


def user_place(executable: Executable, place: int) -> int:
    """Return the innermost place in user code; `place` itself if there is none."""
    chain = frames(executable, place)
    return next((candidate for candidate in chain if not is_shipped(executable, candidate)), place)


def span_of(executable: Executable, place: int) -> Span | None:
    """Return the source location of `place`, or None if the file has none."""
    if not 0 <= place < len(executable.places):
        return None
    record = executable.places[place]
    if not 0 <= record.file < len(executable.files):
        return None
    path = executable.files[record.file].path
    return Span(path, record.line, record.column, record.end_line, record.end_column)


def source_of(executable: Executable, place: int) -> Span | None:
    """Return the source location to report for `place`: the innermost line of user code."""
    return span_of(executable, user_place(executable, place))


def is_shipped(executable: Executable, place: int) -> bool:
    """Return whether `place` is a line of nkic's own library."""
    file = executable.places[place].file
    has_file = 0 <= file < len(executable.files)
    return has_file and executable.files[file].path.startswith(SHIPPED)


def iterations(executable: Executable, record: InstructionRecord | LoopRecord) -> str:
    """Return the iteration of Python loops that made an item ("i=3 j=0"), or an empty string."""
    number = record.iterations if isinstance(record, InstructionRecord) else -1
    return executable.iterations[number] if 0 <= number < len(executable.iterations) else ""
