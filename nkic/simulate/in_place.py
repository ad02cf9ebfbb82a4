"""Tiles that are pieces of an HBM tensor, so that transfers between the two copy nothing.

*Loaded*: one transfer fills the tile from an input that is never written, so the tile always equals
its source. *Stored*: one instruction fills the tile, and one transfer stores it to a part of an
output that is never read and not written otherwise; computing it earlier than the device would
store it is not observable. The host memory of such a tile is that piece. Its device addresses, the
checks of initialised bytes and all times are unchanged: only the values are elsewhere.

Programs with device loops are excluded: an instruction in a loop writes more than once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
)
from nkic.machine.dtypes import DType
from nkic.machine.operands import Row, no_access
from nkic.machine.patterns import Dims, merged

# ---- The accesses of a program to each of its tensors, collected in one pass --------------------

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
    row = record.row
    return row is not None and row.has_setting(row.skips, record.attributes)


def instructions(executable: Executable) -> Iterator[InstructionRecord]:
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
    return ((*(num for _, num in wide), run // unit), (*(step // unit for step, _ in wide), 1))


# --------------------------------------------------------------------------------------------------

Mask = NDArray[np.bool_]


class Piece(NamedTuple):
    """A tile's access to its HBM tensor, and the elements between its partitions' rows.

    `tile` is the transfer's access to the tile, which has `width` elements in each partition.
    """

    pattern: PatternRecord
    pitch: int
    width: int
    tile: PatternRecord


class InPlace:
    """The tiles of a program that are pieces of HBM tensors: `loaded` and `stored` by tensor.

    `complete` are results of which every element is stored by exactly one transfer of such a tile.
    """

    def __init__(self) -> None:
        self.complete: set[int] = set()
        self.loaded: dict[int, Piece] = {}
        self.stored: dict[int, Piece] = {}

    def get(self, tensor: int) -> Piece | None:
        """Return the HBM piece of a tile, if it is one."""
        return self.loaded.get(tensor) or self.stored.get(tensor)

    def is_done(self, operands: Sequence[OperandRecord]) -> bool:
        """Return whether a row that copies, with these operands, copies a piece to itself."""
        dst: PatternRecord = operands[0]  # type: ignore[assignment]
        if dst.tensor in self.loaded:
            return True
        stored = self.stored.get(operands[1].tensor)  # type: ignore[union-attr]
        return stored is not None and stored.pattern == dst


def find(
    executable: Executable,
    uses: list[TensorUse],
    is_kept: Callable[[int], bool],
    alike: Callable[[int, int], bool],
) -> InPlace:
    """Return the tiles of `executable` that are pieces.

    `is_kept` returns whether an HBM tensor has initial contents; `alike`, whether a tile and an HBM
    tensor have the same representation.
    """
    in_place, tensors = InPlace(), executable.tensors
    hbm = [n for n, tensor in enumerate(tensors) if not tensor.buffer.on_chip]
    sources = {n for n in hbm if is_kept(n) and not uses[n].writes}
    outputs = [p.tensor for p in executable.outputs]
    results = {n for n in outputs if not (is_kept(n) or uses[n].read)}
    stores: dict[int, list[tuple[int, Piece]]] = {number: [] for number in results}
    for dst, src in _transfers(executable):
        if src.tensor in sources:
            piece = _piece(dst, src, executable, uses[dst.tensor])
            if piece is not None and alike(dst.tensor, src.tensor):
                in_place.loaded[dst.tensor] = piece
        elif dst.tensor in results:
            piece = _piece(src, dst, executable, uses[src.tensor])
            if piece is not None and alike(src.tensor, dst.tensor):
                stores[dst.tensor].append((src.tensor, piece))
    _keep_stores(in_place, stores, executable, uses)
    return in_place


def _transfers(executable: Executable) -> Iterator[tuple[PatternRecord, PatternRecord]]:
    if any(type(item) is LoopRecord for stream in executable.streams for item in stream.items):
        return
    for stream in executable.streams:
        for record in stream.items:
            row, operands = record.row, record.operands  # type: ignore[union-attr]
            if row is not None and row.copies and len(operands) == 2:
                yield operands  # type: ignore[misc]


def _piece(
    tile: PatternRecord, hbm: PatternRecord, executable: Executable, use: TensorUse
) -> Piece | None:
    """Return the HBM piece of a whole tile with one writer and fixed addresses, or None."""
    record, written = use.writer, use.written
    if record is None or written is None or not use.is_static or use.types != (hbm.dtype,):
        return None
    if record.row is None or len(record.operands) != len(record.row.operands):
        return None  # it may skip rows
    tensor = executable.tensors[tile.tensor]
    if not tensor.buffer.on_chip or hbm.dynamic is not None or not is_whole(tile, tensor.shape):
        return None
    if written is not tile and not is_whole(written, tensor.shape):
        return None
    pitch, width = _row_pitch(hbm.dims, tile.partitions)
    return Piece(hbm, pitch, width, tile) if pitch else None


def is_whole(pattern: PatternRecord, shape: tuple[int, ...]) -> bool:
    """Return whether the access covers a whole tile, in order."""
    _, _, start, partitions, offset, dims, dynamic = pattern
    if start or offset or partitions != shape[0] or dynamic is not None:
        return False
    return _are_all(dims, shape)


@lru_cache(maxsize=4096)
def _are_all(dims: Dims, shape: tuple[int, ...]) -> bool:
    """Return whether `dims` cover a partition of a tile of this shape, in order."""
    size = prod(shape[1:])
    return merged(dims) == (((1, size),) if size > 1 else ())


@lru_cache(maxsize=4096)
def _row_pitch(pairs: Dims, partitions: int) -> tuple[int, int]:
    """Return the elements between the rows of consecutive partitions, and those of a row.

    The former is 0 if rows have gaps.
    """
    dims, size = merged(pairs), prod([num for _, num in pairs])
    row = size // partitions
    if row * partitions != size:
        return 0, row
    if dims in (((1, size),), ()):
        return row, row
    if len(dims) == 2 and dims[0][1] == partitions and dims[1] == (1, row):
        return dims[0][0], row
    return (dims[0][0] if row == 1 and len(dims) == 1 else 0), row


def _keep_stores(
    in_place: InPlace,
    stores: dict[int, list[tuple[int, Piece]]],
    executable: Executable,
    uses: list[TensorUse],
) -> None:
    """Keep the stores into tensors whose elements are all written at most once, by such stores."""
    for number, pairs in stores.items():
        if not pairs or not len({tile for tile, _ in pairs}) == len(pairs) == uses[number].writes:
            continue
        size = prod(executable.tensors[number].shape) * executable.tensors[number].dtype.size
        written = _granules(size, uses[number].columns, [piece.pattern for _, piece in pairs])
        if written is not None:
            in_place.stored |= {tile: p for tile, p in pairs if tile not in in_place.loaded}
            if written.all():
                in_place.complete.add(number)


def _granules(size: int, grain: int, patterns: Iterable[PatternRecord]) -> Mask | None:
    """Return which granules of an HBM tensor of `size` bytes these patterns access; None if they
    access some more than once. No access splits a granule, of `grain` bytes.
    """
    offsets: dict[tuple[Dims, int], list[int]] = defaultdict(list)  # by shape and element size
    for _, dtype, _, _, offset, dims, _ in patterns:
        offsets[dims, dtype.size].append(offset * dtype.size // grain)
    accessed, count = np.zeros(-(-size // grain), np.bool_), 0
    for (dims, unit), firsts in offsets.items():
        indices = np.array(firsts)
        for num, step in zip(*flags_of(dims, unit, grain), strict=True):
            indices = np.add.outer(indices, np.arange(num) * step)
        accessed[indices] = True
        count += indices.size
    return accessed if np.count_nonzero(accessed) == count else None
