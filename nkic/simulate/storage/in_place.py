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
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.patterns import Dims, merged
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, PatternRecord
from nkic.simulate.storage.tensor_usage import TensorUse, flags_of

Mask = NDArray[np.bool_]


class Piece(NamedTuple):
    """A tile's access to its HBM tensor, and the elements between its partitions' rows."""

    pattern: PatternRecord
    pitch: int


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

    def is_done(self, record: InstructionRecord) -> bool:
        """Return whether the record copies a piece to itself."""
        if record.row is None or not record.row.copies:
            return False
        dst, src = record.operands[:2]
        if type(dst) is not PatternRecord or type(src) is not PatternRecord:
            return False
        stored = self.stored.get(src.tensor)
        return dst.tensor in self.loaded or (stored is not None and stored.pattern == dst)


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
    in_place, on_chip = InPlace(), [tensor.buffer.on_chip for tensor in executable.tensors]
    stores: dict[int, list[tuple[int, Piece]]] = {}
    for dst, src in _transfers(executable, on_chip):
        tile, hbm = (dst, src) if on_chip[dst.tensor] else (src, dst)
        use, kept = uses[hbm.tensor], is_kept(hbm.tensor)
        if (use.written or not kept) if tile is dst else (use.read or kept):
            continue
        piece = _piece(tile, hbm, executable, uses[tile.tensor])
        if piece is None or not alike(tile.tensor, hbm.tensor):
            continue
        if tile is dst:
            in_place.loaded[tile.tensor] = piece
        else:
            stores.setdefault(hbm.tensor, []).append((tile.tensor, piece))
    _keep_stores(in_place, stores, executable, uses)
    return in_place


def _transfers(
    executable: Executable, on_chip: list[bool]
) -> Iterator[tuple[PatternRecord, PatternRecord]]:
    """Yield dst and src of plain transfers between a tile and HBM; none if there are loops."""
    if any(type(item) is LoopRecord for stream in executable.streams for item in stream.items):
        return
    for stream in executable.streams:
        for record in stream.items:
            row, operands = record.row, record.operands  # type: ignore[union-attr]
            if row is None or not row.copies or len(operands) != 2:
                continue
            dst, src = operands
            if on_chip[dst.tensor] != on_chip[src.tensor]:  # type: ignore[union-attr]
                yield dst, src  # type: ignore[misc]


def _piece(
    tile: PatternRecord, hbm: PatternRecord, executable: Executable, use: TensorUse
) -> Piece | None:
    """Return the HBM piece of a whole tile with one writer and fixed addresses, or None."""
    if use.writer is None or not use.is_static or use.types != [hbm.dtype]:
        return None
    (row, operands, *_), written = use.writer
    if row is None or len(operands) != len(row.operands):  # it may skip rows
        return None
    shape, pitch = executable.tensors[tile.tensor].shape, _pitch(hbm, tile.partitions)
    is_plain = pitch and is_whole(tile, shape) and (written is tile or is_whole(written, shape))
    return Piece(hbm, pitch) if is_plain else None


def is_whole(pattern: PatternRecord, shape: tuple[int, ...]) -> bool:
    """Return whether the access covers a whole tile, in order."""
    size = prod(shape[1:])
    _, _, start, partitions, offset, dims, dynamic = pattern
    if start or offset or partitions != shape[0] or dynamic is not None:
        return False
    return dims == ((1, size),) or _merged(dims) == (((1, size),) if size > 1 else ())


_merged = lru_cache(maxsize=4096)(merged)


def _pitch(pattern: PatternRecord, partitions: int) -> int:
    """Return the elements between the rows of consecutive partitions, or 0.

    It is 0 if rows have gaps or addresses are not fixed.
    """
    return 0 if pattern.dynamic is not None else _row_pitch(pattern.dims, partitions)


@lru_cache(maxsize=4096)
def _row_pitch(pairs: Dims, partitions: int) -> int:
    dims, size = merged(pairs), prod([num for _, num in pairs])
    row = size // partitions
    if row * partitions != size:
        return 0
    if dims in (((1, size),), ()):
        return row
    if len(dims) == 2 and dims[0][1] == partitions and dims[1] == (1, row):
        return dims[0][0]
    return dims[0][0] if row == 1 and len(dims) == 1 else 0


def _keep_stores(
    in_place: InPlace,
    stores: dict[int, list[tuple[int, Piece]]],
    executable: Executable,
    uses: list[TensorUse],
) -> None:
    """Keep the stores into tensors whose elements are all written at most once, by such stores."""
    results = {p.tensor for p in executable.outputs}
    for number, pairs in stores.items():
        tiles = {tile for tile, _ in pairs}
        if number not in results or not len(tiles) == len(pairs) == uses[number].writes:
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
