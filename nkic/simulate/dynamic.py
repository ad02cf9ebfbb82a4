"""Run-time offsets: an instruction whose patterns depend on registers or on index tiles becomes,
each time it runs, one with fixed patterns, or one for each row that it gathers or scatters.

Sources: `nki.isa.dma_copy` (indirect addressing, out-of-bounds modes), access pattern guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.base.diagnostics import ProgramFault
from nkic.machine.patterns import cuts
from nkic.neff.records import Executable, InstructionRecord, OperandRecord, PatternRecord
from nkic.simulate.decode import EngineState
from nkic.simulate.faults import fault
from nkic.simulate.memory import Memory
from nkic.simulate.tile import Tile


def is_dynamic(record: InstructionRecord) -> bool:
    """Some operand's place is known at run time only: it has a source after the row's own."""
    return record.row is not None and len(record.operands) > len(record.row.operands)


class Resolver:
    """Reads offsets from where they are at this moment."""

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self.executable = executable
        self.memory = memory

    def concrete(
        self, record: InstructionRecord, state: EngineState
    ) -> Iterator[InstructionRecord]:
        """`record` with fixed patterns: one, or one for each row of a gather or scatter."""
        count = len(record.row.operands) if record.row is not None else 0
        rows = _rows(record)
        for row in range(rows or 1):
            operands = [self._fixed(o, record, state, row, rows) for o in record.operands[:count]]
            if all(o is not _SKIPPED for o in operands):
                yield record._replace(operands=tuple(operands))

    def _fixed(
        self,
        operand: OperandRecord,
        record: InstructionRecord,
        state: EngineState,
        row: int,
        rows: int,
    ) -> OperandRecord:
        if type(operand) is not PatternRecord:
            return operand
        if operand.dynamic is None:
            return _part(operand, record, row, rows) if rows else operand
        _, source, stride, limit, _ = operand.dynamic
        index = self._indices(record.operands[source], state)[row]
        dims = ((1, 1), *operand.dims[1:]) if operand.indexed else operand.dims
        moved = operand._replace(offset=operand.offset + index * stride, dims=dims, dynamic=None)
        if 0 <= index < limit and self._inside(moved):
            return moved
        if _skips(record):
            return _SKIPPED
        raise self._outside(record, operand, index, limit)

    def _indices(self, source: OperandRecord, state: EngineState) -> list[int]:
        """Those of a tile go down its columns, one after the other."""
        if type(source) is PatternRecord:
            tile = Tile(self.memory, source).bound()
            return [int(word) for word in tile.bits().reshape(tile.partitions, -1).T.ravel()]
        return [state.registers[source.number]]  # type: ignore[union-attr]

    def _inside(self, pattern: PatternRecord) -> bool:
        low, high = pattern.extent()
        return low >= 0 and high <= self.memory.homes[pattern.tensor].pitch

    def _outside(
        self, record: InstructionRecord, operand: PatternRecord, index: int, limit: int
    ) -> ProgramFault:
        name = self.executable.tensors[operand.tensor].name
        return fault(
            self.executable,
            "index-outside",
            f"{record.row.name if record.row else ''}: index {index} is outside `{name}`, whose "
            f"indexed dimension has {limit}",
            record.place,
            operand.tensor,
            help="check the index, or pass oob_mode=nisa.oob_mode.skip to leave such rows out",
        )


def _rows(record: InstructionRecord) -> int:
    """How many rows a gather or scatter has; 0 if the instruction is neither."""
    for operand in record.operands:
        if type(operand) is PatternRecord and operand.indexed:
            return operand.dims[0][1]
    return 0


def _part(pattern: PatternRecord, record: InstructionRecord, row: int, rows: int) -> PatternRecord:
    """The elements of the other operand that belong to one row."""
    if record.row is not None and record.row.name == "dma_transpose":
        step, _ = pattern.dims[-1]
        dims = (*pattern.dims[:-1], (step, 1))
        return pattern._replace(offset=pattern.offset + row * step, dims=dims)
    if pattern.partitions and pattern.partitions % rows == 0:
        share = pattern.partitions // rows
        return pattern._replace(start=pattern.start + row * share, partitions=share)
    if pattern.partitions:
        share = rows // pattern.partitions
        start = pattern.start + row // share
        return piece(pattern._replace(start=start, partitions=1), row % share, share)
    return piece(pattern, row, rows)


def piece(pattern: PatternRecord, number: int, count: int) -> PatternRecord:
    """One of `count` equal pieces of the stream of elements (in each partition)."""
    offset, dims = pattern.offset, []
    parts = cuts(pattern.dims, count)
    if parts is None:
        raise ValueError(f"{pattern.dims} does not fall into {count} pieces")
    for (step, num), part in zip(pattern.dims, parts, strict=True):
        count //= part
        at, number = divmod(number, count)
        offset += at * (num // part) * step
        dims.append((step, num // part))
    return pattern._replace(offset=offset, dims=tuple(dims))


def _skips(record: InstructionRecord) -> bool:
    """Indices that are out of bounds are left out."""
    names = record.row.attribute_index if record.row is not None else {}
    return "oob_mode" in names and record.attributes[names["oob_mode"]] == "skip"


_SKIPPED = PatternRecord(-1, None, 0, 0, 0, ())  # type: ignore[arg-type]
