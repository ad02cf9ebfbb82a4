"""What an executable holds, as plain records. `emit` fills them, the runner reads them.

Nothing here refers to the compiler's objects: tensors, streams and source places are indices
into tables of the same file, and every number is checked by `verify` before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from nkic.base.source import SourceFile
from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Register, Tile, Value, trips
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.machine.patterns import Pattern, RunTimeOffset
from nkic.machine.targets import Target


class TensorRecord(NamedTuple):
    """A tensor. `partition` and `byte` are its address on chip; both 0 in HBM.

    `core` is the core that owns it, -1 for shared HBM. `role` is input, output, constant or
    internal. `place` indexes `Executable.places`: where it was declared, -1 unknown.
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
        """Bytes per partition; in HBM, all bytes."""
        return _bytes(self.shape, self.buffer.on_chip, self.dtype.size)


@lru_cache(maxsize=4096)
def _bytes(shape: tuple[int, ...], on_chip: bool, size: int) -> int:
    return prod(shape[1:] if on_chip else shape) * size


OffsetRecord = RunTimeOffset[int]


class PatternRecord(Pattern[int, int]):
    """An access pattern, its tensor by index. A run-time offset's `source` is the index of the
    operand that holds it, counted with the hidden ones at the end.
    """

    __slots__ = ()

    @property
    def standing(self) -> PatternRecord:
        """What one offset of 0 addresses: without the dimensions that have an offset each."""
        return self if self.dynamic is None else self._replace(dims=self.fixed_dims, dynamic=None)

    def tile(self, tensor: TensorRecord, offsets: Tile | None = None) -> Tile:
        """What rules and costs see of it; `tensor` is the one it names, `offsets` the tile of
        its offsets.

        The start partition is the physical one.
        """
        return Tile(
            tensor.buffer,
            self.dtype,
            tensor.partition + self.start,
            self.partitions,
            self.dims,
            dynamic=self.dynamic is not None,
            indexed=self.kind in ("vector", "columns"),
            offsets=offsets,
        )


OperandRecord = PatternRecord | Register | float | int | None


class InstructionRecord(NamedTuple):
    """One item of a stream. `row` None: an empty slot that only waits and signals.

    `operands` and `attributes` follow the row; operands that carry dynamic offsets come
    after the row's own. `place` indexes `Executable.places`, `turns` `Executable.turns`.
    """

    row: Row | None
    operands: tuple[OperandRecord, ...]
    attributes: tuple[Any, ...]
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    place: int
    iterations: int = -1


class LoopRecord(NamedTuple):
    """Opens a loop over the next `length` records of the stream (nested loops included).

    Counted: `counter` register runs from start below stop by step; start and stop are ints
    or registers. Conditional: `condition` register, loops while it is not zero.
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
        """How often it runs; None when that is decided at run time."""
        return None if self.condition is not None else trips(self.start, self.stop, self.step)


class StreamRecord(NamedTuple):
    """An in-order stream of one core."""

    core: int
    engine: Engine
    queue: int
    items: tuple[InstructionRecord | LoopRecord, ...]

    @property
    def name(self) -> str:
        """What messages and traces call it."""
        label = f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value
        return f"core{self.core}.{label}"


class ParameterRecord(NamedTuple):
    """An input or output by the name that npz files use."""

    name: str
    tensor: int


class PlaceRecord(NamedTuple):
    """A source place: file index, position, and the place of the call that led here (-1)."""

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
    """A whole file. `semaphores` and `registers` are counts per core.

    `arguments` is how the kernel was specialised, for people. `meta` holds the producer and
    its flags.
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
    iterations: tuple[str, ...] = ()  # of Python's loops: "i=3 j=0"

    @property
    def sources(self) -> dict[str, SourceFile]:
        """The source texts that the file holds, by path: no path of it is ever opened."""
        return {f.path: SourceFile(f.path, f.text) for f in self.files if f.text is not None}

    def facts(self, item: InstructionRecord, target: Target, engine: Engine) -> Facts:
        """What the table's functions see of `item`, which must have a row."""
        row = item.row
        if row is None:
            raise ValueError("an empty slot has no facts")
        operands = {
            o.name: self._seen(v, item) for o, v in zip(row.operands, item.operands, strict=False)
        }
        named = {a.name: v for a, v in zip(row.attributes, item.attributes, strict=True)}
        return Facts(target, operands, named, engine)

    def _seen(self, operand: OperandRecord, item: InstructionRecord) -> Value:
        if not isinstance(operand, PatternRecord):
            return operand
        offsets = None
        if operand.dynamic is not None:
            source = item.operands[operand.dynamic.source]
            if isinstance(source, PatternRecord):
                offsets = source.tile(self.tensors[source.tensor])
        return operand.tile(self.tensors[operand.tensor], offsets)
