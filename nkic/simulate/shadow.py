"""Which bytes have been written since their tensor took them over.

One flag per granule: the largest block of bytes that no access of the program splits, so that
a tile always accessed whole has a single flag. A tensor that takes over bytes starts unwritten:
what a former owner left there is not its value, although the bytes are still in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import gcd

import numpy as np
from numpy.typing import NDArray

from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.memory import Home, Memory, instructions

Segment = tuple[int, str, int]


class _Flags:
    """The flags of one tensor: rows of partitions, columns of bytes."""

    __slots__ = ("array", "columns", "pitch", "resident", "rows", "segments")

    def __init__(self, rows: int, columns: int, partitions: int, pitch: int) -> None:
        self.rows = rows  # partitions per flag
        self.columns = columns  # bytes per flag
        self.pitch = pitch
        shape = (-(-max(1, partitions) // rows), -(-max(1, pitch) // columns))
        self.array: NDArray[np.bool_] = np.zeros(shape, np.bool_)
        self.resident = False
        self.segments: tuple[Segment, ...] = ()

    def window(self, pattern: PatternRecord, on_chip: bool) -> NDArray[np.bool_]:
        """The flags of an access."""
        size, unit = pattern.dtype.size, self.columns
        dims = [(step * size, num) for step, num in pattern.dims if num > 1]
        run = size
        if dims and dims[-1][0] == size:
            run = size * dims.pop()[1]
        shape = [num for _, num in dims] + [run // unit]
        row, item = self.array.strides
        strides = [step // unit * item for step, _ in dims] + [item]
        first = pattern.offset * size // unit * item
        if on_chip:
            shape.insert(0, max(1, pattern.partitions // self.rows))
            strides.insert(0, row)
            first += pattern.start // self.rows * row
        return np.ndarray(tuple(shape), np.bool_, self.array, first, tuple(strides))


class Shadow:
    """The flags of every tensor, and who owns each byte on chip."""

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self.executable = executable
        self.flags = _flags(executable, memory)
        self.owner: dict[Segment, _Flags] = {}
        for number, segments in _segments(executable, memory).items():
            if number in self.flags:
                self.flags[number].segments = segments

    def fill(self, tensor: int) -> None:
        """Marks a whole tensor written: inputs and constants."""
        if tensor in self.flags:
            self.flags[tensor].array[...] = True
            self.flags[tensor].resident = True

    def reader(self, pattern: PatternRecord) -> Callable[[], bool]:
        """Whether all bytes of the access have been written."""
        flags = self.flags[pattern.tensor]
        if flags.array.size == 1:
            return flags.array.item
        window = flags.window(pattern, self._on_chip(pattern))
        if window.size == 1:
            return window.item
        return lambda: bool(window.all())

    def writer(self, pattern: PatternRecord) -> Callable[[], None]:
        """Marks the bytes of the access written; the tensor takes over its bytes."""
        flags = self.flags[pattern.tensor]
        whole = flags.array.size == 1
        window = flags.array if whole else flags.window(pattern, self._on_chip(pattern))

        def write() -> None:
            if not flags.resident:
                self._move_in(flags)
            window[...] = True

        return write

    def missing(self, pattern: PatternRecord) -> tuple[int, int]:
        """How many flags of the access are not set, and how many there are."""
        window = self.flags[pattern.tensor].window(pattern, self._on_chip(pattern))
        return int(window.size - np.count_nonzero(window)), int(window.size)

    def _on_chip(self, pattern: PatternRecord) -> bool:
        return self.executable.tensors[pattern.tensor].buffer.on_chip

    def _move_in(self, flags: _Flags) -> None:
        for segment in flags.segments:
            former = self.owner.get(segment)
            if former is not None and former is not flags and former.resident:
                former.resident = False
                former.array[...] = False
            self.owner[segment] = flags
        flags.resident = True


def _flags(executable: Executable, memory: Memory) -> dict[int, _Flags]:
    grains: dict[int, list[int]] = {}
    for pattern in memory.patterns:
        _refine(grains.setdefault(pattern.tensor, [0, 0]), pattern)
    for pattern in _taken_by_rows(executable):
        grain = grains[pattern.tensor]
        grain[:] = 1, gcd(grain[1], pattern.dtype.size)
    found = {}
    for number, (rows, columns) in grains.items():
        tensor, home = executable.tensors[number], memory.homes[number]
        partitions = tensor.shape[0] if tensor.buffer.on_chip else 1
        found[number] = _Flags(max(1, rows), max(1, columns), partitions, home.pitch)
    return found


def _taken_by_rows(executable: Executable) -> Iterator[PatternRecord]:
    """The operands of gathers and scatters, which run row by row."""
    for item in instructions(executable):
        if item.row is not None and len(item.operands) > len(item.row.operands):
            patterns = [o for o in item.operands if type(o) is PatternRecord]
            if any(p.indexed for p in patterns):
                yield from patterns


def _refine(grain: list[int], pattern: PatternRecord) -> None:
    """Makes the granule small enough for `pattern`."""
    grain[0] = gcd(grain[0], pattern.start, pattern.partitions)
    size = pattern.dtype.size
    if pattern.dynamic is not None:
        grain[1] = gcd(grain[1], pattern.dynamic[2] * size)
    dims = [(step * size, num) for step, num in pattern.dims if num > 1]
    run = size * dims.pop()[1] if dims and dims[-1][0] == size else size
    grain[1] = gcd(grain[1], pattern.offset * size, run, *(step for step, _ in dims))


def _segments(executable: Executable, memory: Memory) -> dict[int, tuple[Segment, ...]]:
    """Each on-chip tensor's bytes as the pieces between all tensors' ends in its region."""
    groups: dict[int, list[tuple[int, Home]]] = defaultdict(list)
    for number, home in memory.homes.items():
        if executable.tensors[number].buffer.on_chip:
            groups[id(home.region)].append((number, home))
    found: dict[int, tuple[Segment, ...]] = {}
    for order, members in enumerate(groups.values()):
        ends = {end for _, h in members for end in (h.byte, h.byte + h.pitch)}
        index = {byte: i for i, byte in enumerate(sorted(ends))}
        starts = sorted({h.partition for _, h in members})
        for number, h in members:
            last = h.partition + executable.tensors[number].shape[0]
            bands = [p for p in starts if h.partition <= p < last]
            pieces = range(index[h.byte], index[h.byte + h.pitch])
            found[number] = tuple((order, str(band), i) for band in bands for i in pieces)
    return found
