"""Which bytes have been written since their tensor took them over.

One flag per granule: the largest block of bytes that no access of the program splits, so that
a tile always accessed whole has a single flag. A tensor that takes over bytes starts unwritten:
what a former owner left there is not its value, although the bytes are still in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from nkic.machine.patterns import Dims
from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.memory import Home, Memory
from nkic.simulate.survey import Use

Segment = tuple[int, int, int]
Check = Callable[[], bool]
Mark = Callable[[], None]
Index = NDArray[np.int64]


class _Flags:
    """The flags of one tensor: rows of partitions, columns of bytes.

    `segments` are the bytes on chip that the tensor takes over with its first write. `parts`
    tells, of blocks that are written in part, which bytes are: partitions, bytes of each.
    """

    __slots__ = ("array", "columns", "parts", "resident", "rows", "segments", "shape")

    def __init__(self, use: Use, partitions: int, pitch: int) -> None:
        self.rows = max(1, use.rows)  # partitions per flag
        self.columns = max(1, use.columns)  # bytes per flag
        self.shape = (max(1, partitions), max(1, pitch))
        self.parts: NDArray[np.bool_] | None = None
        shape = (-(-self.shape[0] // self.rows), -(-self.shape[1] // self.columns))
        self.array: NDArray[np.bool_] = np.zeros(shape, np.bool_)
        self.resident = False
        self.segments: tuple[Segment, ...] = ()

    def window(self, pattern: PatternRecord, on_chip: bool) -> NDArray[np.bool_]:
        """The flags of an access."""
        size, unit = pattern.dtype.size, self.columns
        shape, strides = _flags_of(pattern.dims, size, unit)
        first = pattern.offset * size // unit
        if on_chip:
            row = self.array.strides[0]
            shape = (max(1, pattern.partitions // self.rows), *shape)
            strides = (row, *strides)
            first += pattern.start // self.rows * row
        return np.ndarray(shape, np.bool_, self.array, first, strides)


@lru_cache(maxsize=4096)
def _flags_of(dims: Dims, size: int, unit: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the flags, `unit` bytes each, of the elements at `dims`."""
    wide = [(step * size, num) for step, num in dims if num > 1]
    run = size * wide.pop()[1] if wide and wide[-1][0] == size else size
    return (
        (*(num for _, num in wide), run // unit),
        (*(step // unit for step, _ in wide), 1),
    )


class Shadow:
    """The flags of every tensor that is accessed, and who owns each byte on chip."""

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self.executable = executable
        self.homes = memory.homes
        self.given: set[int] = set()  # HBM tensors, which stay written
        self.flags: dict[int, _Flags] = {}
        self.owner: dict[Segment, _Flags] = {}
        self._whole: dict[int, Mark] = {}  # of tensors that have one flag
        self.origins: dict[int, tuple[int, int]] = {}  # tensor → place, tensor that it read
        self.unread = {
            n for n, h in memory.homes.items() if not h.on_chip and not memory.uses[n].read
        }
        for number, use in enumerate(memory.uses):
            if use.read or use.written:
                home = memory.homes[number]
                partitions = executable.tensors[number].shape[0] if home.on_chip else 1
                self.flags[number] = _Flags(use, partitions, home.pitch)
        for number, segments in _segments(executable, memory).items():
            if number in self.flags:
                self.flags[number].segments = segments

    def fill(self, tensor: int) -> None:
        """Marks a whole tensor written: inputs and constants."""
        if tensor in self.flags:
            self.flags[tensor].array[...] = True
            self.flags[tensor].resident = True
            if not self.homes[tensor].on_chip:
                self.given.add(tensor)

    def checks(self, reads: list[PatternRecord]) -> tuple[tuple[Check, PatternRecord], ...]:
        """What to ask before these reads. HBM tensors that are given need no asking."""
        return tuple([(self.reader(p), p) for p in reads if p.tensor not in self.given])

    def marks(self, writes: list[PatternRecord]) -> tuple[Mark, ...]:
        """What to do after these writes: nothing for an HBM tensor that nobody reads."""
        return tuple([self.writer(p) for p in writes if p.tensor not in self.unread])

    def reader(self, pattern: PatternRecord) -> Check:
        """Whether all bytes of the access have been written."""
        flags = self.flags[pattern.tensor]
        if flags.array.size == 1:
            return flags.array.item
        window = flags.window(pattern, self.homes[pattern.tensor].on_chip)
        size = window.size
        return window.item if size == 1 else lambda: bool(np.count_nonzero(window) == size)

    def writer(self, pattern: PatternRecord) -> Mark:
        """Marks the bytes of the access written; the tensor takes over its bytes."""
        flags = self.flags[pattern.tensor]
        if flags.array.size == 1:
            if pattern.tensor not in self._whole:
                self._whole[pattern.tensor] = _writer(self.owner, flags, flags.array)
            return self._whole[pattern.tensor]
        window = flags.window(pattern, self.homes[pattern.tensor].on_chip)
        return _writer(self.owner, flags, window)

    def window(self, pattern: PatternRecord) -> NDArray[np.bool_]:
        """The flags of an access."""
        return self.flags[pattern.tensor].window(pattern, self.homes[pattern.tensor].on_chip)

    def move_in(self, tensor: int) -> None:
        """The tensor takes over its bytes."""
        if not self.flags[tensor].resident:
            _move_in(self.owner, self.flags[tensor])

    def missing(self, pattern: PatternRecord) -> tuple[int, int]:
        """How many flags of the access are not set, and how many there are."""
        window = self.window(pattern)
        return int(window.size - np.count_nonzero(window)), int(window.size)

    # Element by element, where an access finds bytes that were not written

    def shape_of(self, pattern: PatternRecord) -> tuple[int, int]:
        """Partitions (1 in HBM), and elements of each."""
        on_chip = self.homes[pattern.tensor].on_chip
        return (pattern.partitions if on_chip else 1, prod(num for _, num in pattern.dims))

    def elements(self, pattern: PatternRecord) -> NDArray[np.bool_]:
        """Which elements of the access have been written."""
        mask = np.ones(self.shape_of(pattern), np.bool_)
        flags = self.flags[pattern.tensor]
        for rows, columns in self._bytes(pattern):
            whole = flags.array[rows // flags.rows, columns // flags.columns]
            mask &= whole if flags.parts is None else whole | flags.parts[rows, columns]
        return mask

    def set_elements(self, pattern: PatternRecord, mask: NDArray[np.bool_]) -> None:
        """Marks the elements of `mask` written, and the others of the access as not."""
        self.writer(pattern)()
        if mask.all():
            return
        flags = self.flags[pattern.tensor]
        if flags.parts is None:
            flags.parts = np.zeros(flags.shape, np.bool_)
        for rows, columns in self._bytes(pattern):
            flags.parts[rows, columns] = mask
            rows, columns = np.broadcast_arrays(rows, columns)
            flags.array[rows[~mask] // flags.rows, columns[~mask] // flags.columns] = False

    def _bytes(self, pattern: PatternRecord) -> Iterator[tuple[Index, Index]]:
        """Partition and column of the first byte of every element, then of the second, …"""
        offsets = np.array([pattern.offset], np.int64)
        for step, num in pattern.dims:
            offsets = (offsets[:, None] + np.arange(num) * step).reshape(-1)
        on_chip = self.homes[pattern.tensor].on_chip
        first, count = (pattern.start, pattern.partitions) if on_chip else (0, 1)
        rows = (first + np.arange(count))[:, None]
        for byte in range(pattern.dtype.size):
            yield rows, (offsets * pattern.dtype.size + byte)[None, :]


Owners = dict[Segment, _Flags]


def _writer(owner: Owners, flags: _Flags, window: NDArray[np.bool_]) -> Mark:
    """Sets flags; the first of a tensor that is not in its bytes takes them over."""

    def write() -> None:
        if not flags.resident:
            _move_in(owner, flags)
        window.fill(True)

    return write


def _move_in(owner: Owners, flags: _Flags) -> None:
    for segment in flags.segments:
        former = owner.get(segment)
        if former is not None and former is not flags and former.resident:
            former.resident = False
            former.array[...] = False
            former.parts = None
        owner[segment] = flags
    flags.resident = True


def _segments(executable: Executable, memory: Memory) -> dict[int, tuple[Segment, ...]]:
    """Each on-chip tensor's bytes as the pieces between all tensors' ends in its region."""
    groups: dict[int, list[tuple[int, Home]]] = defaultdict(list)
    for number, home in memory.homes.items():
        if home.on_chip:
            groups[id(home.region)].append((number, home))
    found: dict[int, tuple[Segment, ...]] = {}
    for order, members in enumerate(groups.values()):
        ends = {end for _, h in members for end in (h.byte, h.byte + h.pitch)}
        index = {byte: i for i, byte in enumerate(sorted(ends))}
        starts = sorted({h.partition for _, h in members})
        for number, h in members:
            last = h.partition + executable.tensors[number].shape[0]
            low, high = index[h.byte], index[h.byte + h.pitch]
            bands = range(bisect_left(starts, h.partition), bisect_left(starts, last))
            found[number] = tuple([(order, band, i) for band in bands for i in range(low, high)])
    return found
