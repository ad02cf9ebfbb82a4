"""Which bytes have been written since their tensor took them over.

One flag per granule: the largest block of bytes that no access of the program splits, so that
a tile always accessed whole has a single flag. A tensor that takes over bytes starts unwritten:
what a former owner left there is not its value, although the bytes are still in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.storage.memory import Home, Memory
from nkic.simulate.storage.tensor_usage import TensorUse, flags_of

Segment = tuple[int, int, int]
Check = Callable[[], bool]
Asked = tuple[Check, PatternRecord]
Mark = Callable[[], None]
Mask = NDArray[np.bool_]


class _Flags:
    """The flags of one tensor: rows of partitions, columns of bytes.

    `only` reads the flag of a tensor that has one. `segments` are the bytes on chip that the tensor
    takes over with its first write. `parts` tells, of blocks that are written in part, what of them
    is: for every partition, and every `grain` bytes, which no element splits.
    """

    __slots__ = (
        *("array", "columns", "grain", "only", "parts", "resident", "rows", "segments", "shape"),
    )

    def __init__(self, use: TensorUse, partitions: int, pitch: int) -> None:
        self.rows = max(1, use.rows)  # partitions per flag
        self.columns = max(1, use.columns)  # bytes per flag
        self.grain = gcd(self.columns, *(dtype.size for dtype in use.types))
        self.shape = (max(1, partitions), max(1, pitch))
        self.parts: Mask | None = None
        shape = (-(-self.shape[0] // self.rows), -(-self.shape[1] // self.columns))
        self.array: Mask = np.zeros(shape, np.bool_)
        self.only: Check | None = self.array.item if self.array.size == 1 else None
        self.resident = False
        self.segments: tuple[Segment, ...] = ()

    def window(self, pattern: PatternRecord, on_chip: bool) -> Mask:
        """The flags of an access."""
        size, unit = pattern.dtype.size, self.columns
        shape, strides = flags_of(pattern.dims, size, unit)
        first = pattern.offset * size // unit
        if on_chip:
            row = self.array.strides[0]
            shape = (max(1, pattern.partitions // self.rows), *shape)
            strides = (row, *strides)
            first += pattern.start // self.rows * row
        return np.ndarray(shape, np.bool_, self.array, first, strides)

    def elements(self, pattern: PatternRecord, on_chip: bool) -> Mask:
        """Which elements of an access have been written, one after the other."""
        blocks = self.window(pattern, on_chip)
        rows = blocks.repeat(self.rows, axis=0) if on_chip else blocks
        found = _regrouped(rows, self.columns, pattern.dtype.size)
        if self.parts is not None:
            found |= self._parts(self.parts, pattern, on_chip).all(axis=-1).ravel()
        return found

    def whole(self, size: int) -> Mask:
        """Which elements, of `size` bytes, of all of a tensor in HBM have been written. What no
        access touches may end within a block, so that no access pattern describes all of it.
        """
        total = self.shape[1]
        found: Mask = self.array.ravel().repeat(self.columns)[:total]
        if self.parts is not None:
            np.logical_or(found, self.parts.ravel().repeat(self.grain)[:total], out=found)
        written: Mask = np.logical_and.reduce(found.reshape(-1, size), axis=1)
        return written

    def set_parts(self, pattern: PatternRecord, on_chip: bool, mask: Mask) -> None:
        """Marks the elements of `mask` written in blocks of which the others are not."""
        if self.parts is None:
            shape = (self.shape[0], -(-self.shape[1] // self.grain))
            self.parts = np.zeros(shape, np.bool_)
        parts = self._parts(self.parts, pattern, on_chip)
        parts[...] = mask.reshape(*parts.shape[:-1], 1)
        whole: Mask = mask
        if on_chip:
            whole = np.logical_and.reduce(mask.reshape(-1, self.rows, mask.shape[1]), axis=1)
        blocks = self.window(pattern, on_chip)
        blocks &= _regrouped(whole, pattern.dtype.size, self.columns).reshape(blocks.shape)

    def _parts(self, parts: Mask, pattern: PatternRecord, on_chip: bool) -> Mask:
        """The flags in `parts` of the elements of an access, with those of each element last."""
        scale, pairs = pattern.dtype.size // self.grain, pattern.dims
        shape = (*(num for _, num in pairs), scale)
        strides = (*(step * scale for step, _ in pairs), 1)
        first = pattern.offset * scale
        if on_chip:
            row = parts.strides[0]
            shape, strides = (pattern.partitions, *shape), (row, *strides)
            first += pattern.start * row
        return np.ndarray(shape, np.bool_, parts, first, strides)


def _regrouped(flags: Mask, size: int, wanted: int) -> Mask:
    """Flags of blocks of `size` bytes, in order, as those of blocks of `wanted` bytes."""
    common = gcd(size, wanted)
    pieces = flags.ravel().repeat(size // common).reshape(-1, wanted // common)
    found: Mask = np.logical_and.reduce(pieces, axis=1)
    return found


class Shadow:
    """The flags of every tensor that is accessed, and who owns each byte on chip."""

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self.executable = executable
        self.memory = memory
        self.homes = memory.homes
        self.given: set[int] = set()  # HBM tensors, which stay written
        self.flags: dict[int, _Flags] = {}
        self.owner: dict[Segment, _Flags] = {}
        self._whole: dict[int, Mark] = {}  # of tensors that have one flag
        self._asked: dict[int, Asked] = {}  # by identity of the pattern, which it holds
        self.origins: dict[int, tuple[int, int]] = {}  # tensor → place, tensor that it read
        results = {p.tensor for p in executable.outputs}
        self.unnoted = {
            n
            for n, h in memory.homes.items()
            if not h.on_chip and not memory.uses[n].read and n not in results
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

    def checks(self, reads: list[PatternRecord]) -> tuple[Asked, ...]:
        """What to ask before these reads. HBM tensors that are given need no asking."""
        known, given = self._asked, self.given
        return tuple([known.get(id(p)) or self._ask(p) for p in reads if p.tensor not in given])

    def _ask(self, pattern: PatternRecord) -> Asked:
        found = self._asked[id(pattern)] = (self.reader(pattern), pattern)
        return found

    def marks(self, writes: list[PatternRecord]) -> tuple[Mark, ...]:
        """What to do after these writes: nothing for an HBM tensor that nobody reads."""
        return tuple([self.writer(p) for p in writes if self.is_noted(p.tensor)])

    def is_noted(self, tensor: int) -> bool:
        """Whether writes to a tensor are of interest: somebody reads it, or gets it as a result."""
        return tensor not in self.unnoted and tensor not in self.given

    def reader(self, pattern: PatternRecord) -> Check:
        """Whether all bytes of the access have been written."""
        flags = self.flags[pattern.tensor]
        if flags.only is not None:
            return flags.only
        window = flags.window(pattern, self.homes[pattern.tensor].on_chip)
        size = window.size
        return window.item if size == 1 else lambda: bool(np.count_nonzero(window) == size)

    def writer(self, pattern: PatternRecord) -> Mark:
        """Marks the bytes of the access written; the tensor takes over its bytes."""
        flags = self.flags[pattern.tensor]
        if flags.only is not None:
            if pattern.tensor not in self._whole:
                self._whole[pattern.tensor] = _writer(self.owner, flags, flags.array)
            return self._whole[pattern.tensor]
        window = flags.window(pattern, self.homes[pattern.tensor].on_chip)
        return _writer(self.owner, flags, window)

    def window(self, pattern: PatternRecord) -> Mask:
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

    def elements(self, pattern: PatternRecord) -> Mask:
        """Which elements of the access have been written."""
        found = self.flags[pattern.tensor].elements(pattern, self.homes[pattern.tensor].on_chip)
        return found.reshape(self.shape_of(pattern))

    def zeros(self, pattern: PatternRecord) -> Mask:
        """Which elements of the access are zero."""
        found: Mask = self.memory.window(pattern).reshape(self.shape_of(pattern)) == 0
        return found

    def clear(self, pattern: PatternRecord) -> None:
        """Zeros in the place of the elements of the access that were not written."""
        window = self.memory.window(pattern)
        unwritten = ~self.elements(pattern).reshape(window.shape)
        if unwritten.any():  # a tile that was loaded whole may be a piece of an input
            window[unwritten] = 0

    def set_elements(self, pattern: PatternRecord, mask: Mask) -> None:
        """Marks the elements of `mask` written, and the others of the access as not."""
        self.writer(pattern)()
        if not mask.all():
            on_chip = self.homes[pattern.tensor].on_chip
            self.flags[pattern.tensor].set_parts(pattern, on_chip, mask)


Owners = dict[Segment, _Flags]


def _writer(owner: Owners, flags: _Flags, window: Mask) -> Mark:
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
    for number, home in memory.placed.items():
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
