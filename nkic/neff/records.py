"""The contents of an executable as plain records, written by `emit` and read by the runner.

Records do not refer to the compiler's objects: tensors, streams and source places are indices into
tables of the same file, and `verify` checks every number before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from nkic.base.source import SourceFile
from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Register, Tile, trips
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.machine.patterns import Pattern, RunTimeOffset
from nkic.machine.targets import Target


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
