"""What a run may know of elements beside their values: a record for each, as instructions see it.

`bounds` keeps errors there, and `field` residues.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.dtypes import DType
from nkic.machine.operands import Depends
from nkic.machine.targets import Engine, Target
from nkic.simulate.dynamic import Dynamic
from nkic.simulate.memory import Memory
from nkic.simulate.plans import Step
from nkic.simulate.streams import Hook, Item, Runner, nothing
from nkic.simulate.tile import Tile

Records = NDArray[Any]


class RecordStore:
    """Records by tensor: (partitions, elements), HBM (1, elements). Zeros until written."""

    def __init__(self, executable: Executable, dtype: DTypeLike) -> None:
        self._tensors = executable.tensors
        self._dtype = np.dtype(dtype)
        self._wholes: dict[int, Records] = {}

    def whole(self, tensor: int) -> Records:
        if tensor not in self._wholes:
            record = self._tensors[tensor]
            rows = record.shape[0] if record.buffer.on_chip else 1
            self._wholes[tensor] = np.zeros((rows, prod(record.shape) // rows), self._dtype)
        return self._wholes[tensor]

    def shape(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return the partitions (1 in HBM), and the elements of each."""
        rows = pattern.partitions if self._tensors[pattern.tensor].buffer.on_chip else 1
        return rows, prod(num for _, num in pattern.dims)

    def window(self, pattern: PatternRecord) -> Records | None:
        """Return a view if the access is to the tensor's own elements at a fixed address."""
        own = self._tensors[pattern.tensor].dtype
        if pattern.dynamic is not None or not self.reads_same(pattern.dtype, own):
            return None
        whole, size = self.whole(pattern.tensor), self._dtype.itemsize
        shape = (self.shape(pattern)[0], *(num for _, num in pattern.dims))
        strides = (whole.strides[0], *(step * size for step, _ in pattern.dims))
        first = pattern.start * whole.strides[0] + pattern.offset * size
        return np.ndarray(shape, self._dtype, whole, first, strides)

    def places(self, pattern: PatternRecord, count: int) -> Records | None:
        """Return a view of all places of a pattern with run-time offsets: (offsets, *shape)."""
        window = self.window(pattern.standing)
        if window is None or pattern.dynamic is None:
            return None
        stride = pattern.dynamic.stride * self._dtype.itemsize
        return as_strided(window, (count, *window.shape), (stride, *window.strides))

    def reads_same(self, accessed: DType, own: DType) -> bool:
        """Return whether an access by another type finds the tensor's own elements."""
        return accessed.size == own.size

    def taken(self, resolved: Resolved) -> Records | None:
        """Return a copy of what a transfer that moves rows one by one reads: (rows, elements)."""
        src, source = resolved.pattern(SRC), resolved.rows.get(SRC)
        window = self.window(src) if source is None else self.places(src, source.size)
        if window is None:
            return None
        rows: Records = window if source is None else window[source.indices]
        return rows.reshape(resolved.row_count, -1).copy()

    def put(self, resolved: Resolved, rows: Records) -> bool:
        """Set what such a transfer writes, and return whether its place is known."""
        dst, target = resolved.pattern(DST), resolved.rows.get(DST)
        into = self.window(dst) if target is None else self.places(dst, target.size)
        if into is None:
            return False
        inside = np.broadcast_to(resolved.inside, resolved.row_count)
        if target is not None:
            into[target.indices[inside]] = rows.reshape(-1, *into.shape[1:])[inside]
        else:
            flat = into.reshape(resolved.row_count, -1).copy()
            flat[inside] = rows[inside]
            into[...] = flat.reshape(into.shape)
        return True


Store = TypeVar("Store", bound=RecordStore)
Lanes = TypeVar("Lanes")


class Operands(Generic[Store, Lanes]):
    """An instruction before it runs; `lanes` are the accumulators of its engine."""

    def __init__(
        self, record: InstructionRecord, memory: Memory, store: Store, lanes: Lanes
    ) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no operands")
        self.row, self.place = row, record.place
        self._memory, self._store, self.lanes = memory, store, lanes
        self.operands = dict(zip(row.operand_index, record.operands, strict=False))
        self.attributes: Mapping[str, Any] = dict(
            zip(row.attribute_index, record.attributes, strict=True)
        )

    def pattern(self, name: str) -> PatternRecord | None:
        operand = self.operands.get(name)
        return operand if type(operand) is PatternRecord else None

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return (partitions, *free dimensions), HBM (1, *dimensions)."""
        operand = self.pattern(name)
        return self._memory.form(operand).shape if operand is not None else ()

    def first(self, name: str) -> int:
        """Return the first partition of an on-chip tile."""
        operand = self.pattern(name)
        return self._memory.form(operand).first if operand is not None else 0


# ------------------------------------------------------------------------------------------------
# Run-time offsets: the current addresses of an instruction's operands, as a follower sees them.
# A known offset is as good as a fixed one. Any other can lead anywhere, so that nothing is known of
# what the instruction writes.

DST, SRC = 0, 1  # the operands of a transfer


class Rows(NamedTuple):
    """The offsets of an operand's rows, clamped to the `size` offsets inside the tensor."""

    indices: NDArray[np.int64]
    size: int
    kind: str


class Resolved(NamedTuple):
    """An instruction with its scalar offsets resolved.

    `rows` has the other offsets, by operand, and `inside` tells which rows are not skipped.
    """

    record: InstructionRecord
    rows: Mapping[int, Rows]
    inside: NDArray[np.bool_]

    @property
    def row_count(self) -> int:
        """The number of rows of a transfer that moves them one by one."""
        return len(next(iter(self.rows.values())).indices)

    def pattern(self, number: int) -> PatternRecord:
        operand = self.record.operands[number]
        assert type(operand) is PatternRecord
        return operand

    @property
    def is_transfer(self) -> bool:
        """Whether the instruction moves rows one by one."""
        row = self.record.row
        copies = row is not None and row.moves and row.depends is Depends.ELEMENTWISE
        return (
            copies
            and bool(self.rows)
            and all(offsets.kind == "vector" for offsets in self.rows.values())
        )


def resolve(record: InstructionRecord, dynamic: Dynamic) -> Resolved:
    operands, inside = list(record.operands), np.ones(1, np.bool_)
    rows: dict[int, Rows] = {}
    for place in dynamic.places:
        number = next(n for n, operand in enumerate(operands) if operand is place.pattern)
        indices = place.indices()
        good = place.good(indices)
        if place.pattern.kind == "scalar":
            operands[number] = _at(place.pattern, int(indices[0]))
            good = good[:1]
        else:
            rows[number] = Rows(indices.clip(0, place.size - 1), place.size, place.pattern.kind)
        inside = inside & good
    return Resolved(record._replace(operands=tuple(operands)), rows, inside)


def _at(pattern: PatternRecord, index: int) -> PatternRecord:
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    return pattern._replace(offset=pattern.offset + index * stride, dynamic=None)


# ---- what follows a run


class Follower(Hook):
    """Records of one rank that change with each instruction that runs."""

    def __init__(self, executable: Executable, memory: Memory, target: Target) -> None:
        self.executable, self.memory, self.target = executable, memory, target
        self._after: Step = nothing

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        if item.step is not None and not item.is_rendezvous:
            self._after = self.before(item.record, runner.core, runner.engine, item.dynamic)

    def end(self, runner: Runner, item: Item, start: int) -> None:
        after, self._after = self._after, nothing
        after()

    def meet(self, runners: Sequence[Runner]) -> None:
        for runner in runners:
            self.lose(runner.item.record, runner.engine)

    def before(
        self, record: InstructionRecord, core: int, engine: Engine, dynamic: Dynamic | None = None
    ) -> Step:
        if dynamic is not None and self.knows_offsets(record):
            resolved = resolve(record, dynamic)
            if not resolved.inside.any():
                return nothing
            if resolved.is_transfer:
                return self.moving(resolved, engine)
            if not resolved.rows and resolved.inside.all():
                record = resolved.record
        return self.following(record, core, engine)

    @abstractmethod
    def knows_offsets(self, record: InstructionRecord) -> bool:
        """Return whether its run-time offsets are those of every such run."""

    @abstractmethod
    def moving(self, resolved: Resolved, engine: Engine) -> Step:
        """Follow a transfer that moves rows one by one."""

    @abstractmethod
    def following(self, record: InstructionRecord, core: int, engine: Engine) -> Step:
        """Follow any other instruction."""

    @abstractmethod
    def lose(self, record: InstructionRecord, engine: Engine) -> None:
        """Give up what an exchange has written."""


def values_of(memory: Memory, pattern: PatternRecord) -> NDArray[np.float64]:
    memory.scratch.begin()
    operand = Tile(memory, pattern).bound().load()()
    return np.array(operand, np.float64)
