"""The accesses of a program to each of its tensors, collected in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd

from nkic.machine.dtypes import DType
from nkic.machine.operands import Row, no_access
from nkic.machine.patterns import Dims
from nkic.neff.records import Executable, InstructionRecord, PatternRecord

Modes = list[tuple[bool, bool]]
OFFSET_MODE = (True, False)  # operands that hold offsets


class TensorUse:
    """The accesses to one tensor.

    `writes` counts its writing instructions; `writer` is the only one, which writes `written`, or
    None if there is none or several. `types` are distinct. `is_static` tells that all addresses are
    fixed. `rows` and `columns` are the partitions and bytes of a granule, the largest block that no
    access splits; 0 without accesses.
    """

    __slots__ = (
        *("columns", "is_static", "last", "read", "rows", "types", "writer", "writes", "written"),
    )

    def __init__(self) -> None:
        self.types: tuple[DType, ...] = ()
        self.read = False
        self.writes = 0
        self.rows = 0
        self.columns = 0
        self.is_static = True
        # the last pattern added; tiles are mostly accessed whole
        self.last: PatternRecord | None = None
        self.writer: InstructionRecord | None = None
        self.written: PatternRecord | None = None

    def add(self, pattern: PatternRecord) -> None:
        """Add the pattern of an access."""
        if pattern == self.last:
            return
        self.last = pattern
        _, dtype, start, partitions, offset, dims, dynamic = pattern
        if dynamic is not None:
            dims = pattern.standing.dims
        size = dtype.size
        if dtype not in self.types:
            self.types += (dtype,)
        self.rows = gcd(self.rows, start, partitions)
        self.columns = gcd(self.columns, offset * size, _grain(dims, size))
        if dynamic is not None:
            self.is_static = False
            self.columns = gcd(self.columns, dynamic[2] * size)

    def split(self, size: int) -> None:
        """Record accesses to single rows of `size` bytes, at run-time addresses."""
        self.is_static = False
        self.rows, self.columns = 1, gcd(self.columns, size)


def tensor_usage(executable: Executable) -> list[TensorUse]:
    """Return the use of every tensor."""
    uses = [TensorUse() for _ in executable.tensors]
    modes_by_row: dict[Row, Modes] = {}
    for item in instructions(executable):
        row, operands = item.row, item.operands
        if row is None:
            continue
        modes = modes_by_row.get(row) or modes_by_row.setdefault(row, _modes(row))
        for operand, (reads, writes) in zip(operands, modes, strict=False):
            if type(operand) is not PatternRecord:
                continue
            use = uses[operand.tensor]
            if operand is not use.last:
                use.add(operand)
            if reads:
                use.read = True
            if writes:
                use.writer, use.written = (None, None) if use.writes else (item, operand)
                use.writes += 1
        if len(operands) > len(row.operands):
            _split(uses, item)
    return uses


def _split(uses: list[TensorUse], item: InstructionRecord) -> None:
    """Split the tensors of a gather or scatter that may skip rows, since it writes row by row."""
    patterns = [operand for operand in item.operands if type(operand) is PatternRecord]
    if skips_rows(item):
        for pattern in patterns:
            uses[pattern.tensor].split(pattern.dtype.size)


def skips_rows(record: InstructionRecord) -> bool:
    """Return whether the instruction skips out-of-bounds rows."""
    row = record.row
    return row is not None and row.has_setting(row.skips, record.attributes)


def instructions(executable: Executable) -> Iterator[InstructionRecord]:
    """Yield every instruction of every stream."""
    for stream in executable.streams:
        for item in stream.items:
            if type(item) is InstructionRecord:
                yield item


def _modes(row: Row) -> Modes:
    """Return whether an instruction of the row may read and write each operand.

    The hidden operands after the row's own hold offsets.
    """
    varies = row.access is not no_access
    modes = [(rule.access.reads or varies, rule.access.writes) for rule in row.operands]
    return modes + [OFFSET_MODE] * len(modes)


@lru_cache(maxsize=4096)
def _grain(dims: tuple[tuple[int, int], ...], size: int) -> int:
    """Return the greatest common divisor of contiguous runs and their strides, in bytes."""
    wide = [(step * size, num) for step, num in dims if num > 1]
    run = size * wide.pop()[1] if wide and wide[-1][0] == size else size
    return gcd(run, *(step for step, _ in wide))


@lru_cache(maxsize=4096)
def flags_of(dims: Dims, size: int, unit: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides of the flags, `unit` bytes each, of the elements at `dims`."""
    wide = [(step * size, num) for step, num in dims if num > 1]
    run = size * wide.pop()[1] if wide and wide[-1][0] == size else size
    return (
        (*(num for _, num in wide), run // unit),
        (*(step // unit for step, _ in wide), 1),
    )
