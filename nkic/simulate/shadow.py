"""The bytes that have been written since their tensor took them over.

There is one flag per granule: the largest block of bytes that no access of the program splits, so
that a tile always accessed whole has a single flag. A tensor that takes over bytes starts
uninitialised: the bytes of a former owner are not its value, although they are still in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, PatternRecord
from nkic.simulate.in_place import TensorUse, flags_of, is_whole
from nkic.simulate.memory import Memory

# ---- The flags of one tensor's initialised bytes, per block that no access splits ---------------

Check = Callable[[], bool]
Mask = NDArray[np.bool_]


class Flags:
    """The flags of one tensor: rows of partitions, columns of bytes.

    `only` reads the flag of a tensor with a single one. `parts` refines blocks that are partly
    initialised: a flag for every partition and every `grain` bytes, which no element splits.
    """

    __slots__ = (*("array", "columns", "grain", "only", "parts", "rows", "shape"),)

    def __init__(self, use: TensorUse, partitions: int, pitch: int) -> None:
        self.rows = max(1, use.rows)  # partitions per flag
        self.columns = max(1, use.columns)  # bytes per flag
        self.grain = gcd(self.columns, *(dtype.size for dtype in use.types))
        self.shape = (max(1, partitions), max(1, pitch))
        self.parts: Mask | None = None
        shape = (-(-self.shape[0] // self.rows), -(-self.shape[1] // self.columns))
        self.array: Mask = np.zeros(shape, np.bool_)
        self.only: Check | None = self.array.item if self.array.size == 1 else None

    def window(self, pattern: PatternRecord, on_chip: bool) -> Mask:
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
        blocks = self.window(pattern, on_chip)
        rows = blocks.repeat(self.rows, axis=0) if on_chip else blocks
        mask = _regrouped(rows, self.columns, pattern.dtype.size)
        if self.parts is not None:
            mask |= self._parts(self.parts, pattern, on_chip).all(axis=-1).ravel()
        return mask

    def whole(self, size: int) -> Mask:
        """Return which elements, of `size` bytes, of a whole HBM tensor are initialised.

        Bytes that no access touches may end within a block, so no access pattern describes the
        whole.
        """
        total = self.shape[1]
        flags: Mask = self.array.ravel().repeat(self.columns)[:total]
        if self.parts is not None:
            np.logical_or(flags, self.parts.ravel().repeat(self.grain)[:total], out=flags)
        written: Mask = np.logical_and.reduce(flags.reshape(-1, size), axis=1)
        return written

    def set_parts(self, pattern: PatternRecord, on_chip: bool, mask: Mask) -> None:
        """Mark the elements of `mask` initialised, in blocks whose other elements are not."""
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
        """Return the flags in `parts` of an access's elements, with an element's flags last."""
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
    """Convert flags of blocks of `size` bytes to flags of blocks of `wanted` bytes."""
    common = gcd(size, wanted)
    pieces = flags.ravel().repeat(size // common).reshape(-1, wanted // common)
    regrouped: Mask = np.logical_and.reduce(pieces, axis=1)
    return regrouped


# --------------------------------------------------------------------------------------------------

Segments = tuple[range, ...]  # pieces of bytes on chip, by number
PatternCheck = tuple[Check, PatternRecord]
Mark = Callable[[], None]


class _AllFlags(dict[int, Flags]):
    """The flags of every tensor, made on demand: most tensors are only written as a whole."""

    def __init__(self, make: Callable[[int], Flags]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Flags:
        flags = self[number] = self._make(number)
        return flags


class Shadow:
    """The flags of every accessed tensor, and the owner of each byte on chip.

    `is_initialised` marks the tensors whose accesses need no check of flags: those that are fully
    initialised until another tensor takes over their bytes, those whose writes do not matter, and
    results that are certain to be complete at the end. `owns_bytes` marks those that own their
    bytes.
    """

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self._tensors = executable.tensors
        self.memory = memory
        self.homes = memory.homes
        self.initial: set[int] = set()  # HBM tensors with initial contents
        self.owner: dict[int, int] = {}  # tensors by segment, or by inverted slot
        # by identity of the pattern, which the value keeps alive
        self._checks: dict[int, PatternCheck] = {}
        self._windows: dict[int, tuple[Mask, PatternRecord]] = {}  # the same, of writes
        # tensor → place and tensor that the bytes were read from
        self.origins: dict[int, tuple[int, int]] = {}
        results = {p.tensor for p in executable.outputs}
        self.unread = {
            n
            for n, h in memory.homes.items()
            if not h.on_chip and not memory.uses[n].read and n not in results
        }
        self.is_initialised = [False] * len(executable.tensors)
        self.owns_bytes = [False] * len(executable.tensors)
        for number in (*self.unread, *memory.in_place.complete):
            self.is_initialised[number] = True
        # Not a method of this object: in a cycle, memory would stay until the next collection.
        self.flags = _AllFlags(partial(_flags_of, executable, memory, self.is_initialised))
        self._segments = _segments(executable, memory)

    def is_accessed(self, tensor: int) -> bool:
        return _is_accessed(self.memory, tensor)

    def fill(self, tensor: int) -> None:
        """Mark a whole tensor initialised: inputs and constants."""
        if self.is_accessed(tensor):
            self.owns_bytes[tensor] = self.is_initialised[tensor] = True
            if not self.homes[tensor].on_chip:
                self.initial.add(tensor)

    def checks(self, reads: list[PatternRecord]) -> tuple[PatternCheck, ...]:
        """Return the checks of these reads; HBM tensors with initial contents need none."""
        checks, initial = self._checks, self.initial
        return tuple(
            [checks.get(id(p)) or self._check(p) for p in reads if p.tensor not in initial]
        )

    def _check(self, pattern: PatternRecord) -> PatternCheck:
        check = self._checks[id(pattern)] = (self.reader(pattern), pattern)
        return check

    def is_written(self, pattern: PatternRecord) -> bool:
        if self.is_initialised[pattern.tensor]:
            return True
        check = self._checks.get(id(pattern)) or self._check(pattern)
        return check[0]()

    def note(self, pattern: PatternRecord) -> None:
        """Mark the bytes of the access initialised; the tensor takes over its bytes."""
        number = pattern.tensor
        if self.is_initialised[number]:
            return
        if not self.owns_bytes[number]:
            self._move_in(number)
        # every access covers all of the tensor, or this one does
        use, home, tensor = self.memory.uses[number], self.homes[number], self._tensors[number]
        has_one_flag = use.columns >= home.pitch and use.rows >= tensor.shape[0]
        if has_one_flag or (pattern.dtype is tensor.dtype and is_whole(pattern, tensor.shape)):
            self.is_initialised[number] = True
            if number in self.flags:
                self.flags[number].array.fill(True)
            return
        window_entry = self._windows.get(id(pattern))
        if window_entry is None:
            window_entry = self._windows[id(pattern)] = (self.window(pattern), pattern)
        window, array = window_entry[0], self.flags[number].array
        window.fill(True)
        if window.size >= array.size and array.all():
            self.is_initialised[number] = True

    def is_noted(self, tensor: int) -> bool:
        """Return whether writes to a tensor matter: it is read, or is a result."""
        return tensor not in self.unread and tensor not in self.initial

    def reader(self, pattern: PatternRecord) -> Check:
        flags = self.flags[pattern.tensor]
        if flags.only is not None:
            return flags.only
        window = flags.window(pattern, self.homes[pattern.tensor].on_chip)
        size = window.size
        return window.item if size == 1 else lambda: bool(np.count_nonzero(window) == size)

    def writer(self, pattern: PatternRecord) -> Mark:
        """Return a function that marks the access initialised and takes over the tensor's bytes."""
        return partial(self.note, pattern)

    def window(self, pattern: PatternRecord) -> Mask:
        return self.flags[pattern.tensor].window(pattern, self.homes[pattern.tensor].on_chip)

    def move_in(self, tensor: int) -> None:
        if not self.owns_bytes[tensor]:
            self._move_in(tensor)

    def _move_in(self, tensor: int) -> None:
        owner, owns_bytes = self.owner, self.owns_bytes
        slot = self.memory.slots[tensor]
        for segments in ((~slot,),) if slot is not None else self._segments.get(tensor, ()):
            for segment in segments:
                former = owner.get(segment)
                if former is not None and former != tensor and owns_bytes[former]:
                    self._move_out(former)
                owner[segment] = tensor
        owns_bytes[tensor] = True

    def _move_out(self, tensor: int) -> None:
        self.owns_bytes[tensor] = self.is_initialised[tensor] = False
        flags = self.flags.get(tensor)
        if flags is not None:
            flags.array[...] = False
            flags.parts = None

    def missing(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return how many flags of the access are not set, and how many there are.

        There is a flag per element if blocks of the tensor are partly initialised.
        """
        divided = self.flags[pattern.tensor].parts is not None
        window = self.elements(pattern) if divided else self.window(pattern)
        return int(window.size - np.count_nonzero(window)), int(window.size)

    # ---- element by element, for accesses to uninitialised bytes ----

    def shape_of(self, pattern: PatternRecord) -> tuple[int, int]:
        """Return the partitions (1 in HBM) of an access, and the elements of each."""
        on_chip = self.homes[pattern.tensor].on_chip
        return (pattern.partitions if on_chip else 1, prod(num for _, num in pattern.dims))

    def elements(self, pattern: PatternRecord) -> Mask:
        mask = self.flags[pattern.tensor].elements(pattern, self.homes[pattern.tensor].on_chip)
        return mask.reshape(self.shape_of(pattern))

    def zeros(self, pattern: PatternRecord) -> Mask:
        mask: Mask = self.memory.window(pattern).reshape(self.shape_of(pattern)) == 0
        return mask

    def clear(self, pattern: PatternRecord) -> None:
        """Fill the uninitialised elements of the access with zeros."""
        window = self.memory.window(pattern)
        unwritten = ~self.elements(pattern).reshape(window.shape)
        if unwritten.any():  # a fully loaded tile may be a piece of a read-only input
            window[unwritten] = 0

    def set_elements(self, pattern: PatternRecord, mask: Mask) -> None:
        """Mark the elements of `mask` initialised, and the other elements of the access not."""
        self.writer(pattern)()
        if not mask.all():
            on_chip = self.homes[pattern.tensor].on_chip
            self.flags[pattern.tensor].set_parts(pattern, on_chip, mask)
            self.is_initialised[pattern.tensor] = False


def _segments(executable: Executable, memory: Memory) -> dict[int, Segments]:
    """Cut each on-chip tensor's bytes at the ends of all tensors in its region."""
    segments: dict[int, Segments] = {}
    first = 0
    for numbers in memory.groups:
        if len(numbers) == 1 or memory.slots[numbers[0]] is not None:
            continue  # its bytes are never taken over, or only as a whole
        members = [(number, memory.placed[number]) for number in numbers]
        ends = {end for _, h in members for end in (h.byte, h.byte + h.pitch)}
        index = {byte: i for i, byte in enumerate(sorted(ends))}
        starts = sorted({h.partition for _, h in members})
        size = len(ends)
        bands = range(1)  # of most regions: all tensors start at one partition
        for number, h in members:
            if len(starts) > 1:
                last = h.partition + executable.tensors[number].shape[0]
                bands = range(bisect_left(starts, h.partition), bisect_left(starts, last))
            low, high = first + index[h.byte], first + index[h.byte + h.pitch]
            segments[number] = tuple([range(low + n * size, high + n * size) for n in bands])
        first += len(starts) * size
    return segments


def _is_accessed(memory: Memory, tensor: int) -> bool:
    use = memory.uses[tensor]
    return use.read or use.writes > 0


def _flags_of(
    executable: Executable, memory: Memory, is_initialised: list[bool], number: int
) -> Flags:
    if not _is_accessed(memory, number):
        raise KeyError(number)
    home = memory.homes[number]
    partitions = executable.tensors[number].shape[0] if home.on_chip else 1
    flags = Flags(memory.uses[number], partitions, home.pitch)
    if is_initialised[number]:
        flags.array.fill(True)
    return flags
