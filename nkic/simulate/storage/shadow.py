"""Which bytes have been written since their tensor took them over.

One flag per granule: the largest block of bytes that no access of the program splits, so that
a tile always accessed whole has a single flag. A tensor that takes over bytes starts unwritten:
what a former owner left there is not its value, although the bytes are still in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.storage.flags import Check, Flags, Mask
from nkic.simulate.storage.in_place import is_whole
from nkic.simulate.storage.memory import Home, Memory

Segments = tuple[range, ...]  # pieces of bytes on chip, by number
Asked = tuple[Check, PatternRecord]
Mark = Callable[[], None]


class _AllFlags(dict[int, Flags]):
    """Those of every tensor of which they were asked for: most are only written as a whole."""

    def __init__(self, make: Callable[[int], Flags]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Flags:
        found = self[number] = self._make(number)
        return found


class Shadow:
    """The flags of every tensor that is accessed, and who owns each byte on chip.

    `sure` are the tensors, by number, of which an access needs no look at flags: those of which all
    is written and stays so until another tensor takes over their bytes, and those whose writes are
    of no interest. `resident` are those that have their bytes.
    """

    def __init__(self, executable: Executable, memory: Memory) -> None:
        self.executable = executable
        self.memory = memory
        self.homes = memory.homes
        self.given: set[int] = set()  # HBM tensors, which stay written
        self.flags = _AllFlags(self._made)
        self.owner: dict[int, int] = {}  # tensors by segment
        self._asked: dict[int, Asked] = {}  # by identity of the pattern, which it holds
        self._windows: dict[int, tuple[Mask, PatternRecord]] = {}  # the same, of writes
        self.origins: dict[int, tuple[int, int]] = {}  # tensor → place, tensor that it read
        results = {p.tensor for p in executable.outputs}
        self.unnoted = {
            n
            for n, h in memory.homes.items()
            if not h.on_chip and not memory.uses[n].read and n not in results
        }
        self.sure = [False] * len(executable.tensors)
        self.resident = [False] * len(executable.tensors)
        for number in self.unnoted:
            self.sure[number] = True
        self._segments = _segments(executable, memory)

    def _made(self, number: int) -> Flags:
        use, home = self.memory.uses[number], self.homes[number]
        if not self.is_followed(number):
            raise KeyError(number)
        partitions = self.executable.tensors[number].shape[0] if home.on_chip else 1
        made = Flags(use, partitions, home.pitch)
        if self.sure[number]:
            made.array.fill(True)
        return made

    def is_followed(self, tensor: int) -> bool:
        """Whether something accesses it."""
        use = self.memory.uses[tensor]
        return use.read or use.written

    def fill(self, tensor: int) -> None:
        """Marks a whole tensor written: inputs and constants."""
        if self.is_followed(tensor):
            self.resident[tensor] = self.sure[tensor] = True
            if not self.homes[tensor].on_chip:
                self.given.add(tensor)

    def checks(self, reads: list[PatternRecord]) -> tuple[Asked, ...]:
        """What to ask before these reads. HBM tensors that are given need no asking."""
        known, given = self._asked, self.given
        return tuple([known.get(id(p)) or self._ask(p) for p in reads if p.tensor not in given])

    def _ask(self, pattern: PatternRecord) -> Asked:
        found = self._asked[id(pattern)] = (self.reader(pattern), pattern)
        return found

    def is_written(self, pattern: PatternRecord) -> bool:
        """Whether all bytes of the access have been written; asked often of one pattern."""
        if self.sure[pattern.tensor]:
            return True
        asked = self._asked.get(id(pattern)) or self._ask(pattern)
        return asked[0]()

    def note(self, pattern: PatternRecord) -> None:
        """The bytes of the access are written now; the tensor has taken over its bytes."""
        number = pattern.tensor
        if self.sure[number]:
            return
        if not self.resident[number]:
            self._move_in(number)
        if self._is_all(pattern):
            self.sure[number] = True
            if number in self.flags:
                self.flags[number].array.fill(True)
            return
        known = self._windows.get(id(pattern))
        if known is None:
            known = self._windows[id(pattern)] = (self.window(pattern), pattern)
        window, array = known[0], self.flags[number].array
        window.fill(True)
        if window.size >= array.size and array.all():
            self.sure[number] = True

    def _is_all(self, pattern: PatternRecord) -> bool:
        """The access is to all of a tensor on chip."""
        tensor = self.executable.tensors[pattern.tensor]
        return pattern.dtype is tensor.dtype and is_whole(pattern, tensor.shape)

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
        return partial(self.note, pattern)

    def window(self, pattern: PatternRecord) -> Mask:
        """The flags of an access."""
        return self.flags[pattern.tensor].window(pattern, self.homes[pattern.tensor].on_chip)

    def move_in(self, tensor: int) -> None:
        """The tensor takes over its bytes."""
        if not self.resident[tensor]:
            self._move_in(tensor)

    def _move_in(self, tensor: int) -> None:
        owner, resident = self.owner, self.resident
        for segments in self._segments.get(tensor, ()):
            for segment in segments:
                former = owner.get(segment)
                if former is not None and former != tensor and resident[former]:
                    self._move_out(former)
                owner[segment] = tensor
        resident[tensor] = True

    def _move_out(self, tensor: int) -> None:
        self.resident[tensor] = self.sure[tensor] = False
        flags = self.flags.get(tensor)
        if flags is not None:
            flags.array[...] = False
            flags.parts = None

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
            self.sure[pattern.tensor] = False


def _segments(executable: Executable, memory: Memory) -> dict[int, Segments]:
    """Each on-chip tensor's bytes as the pieces between all tensors' ends in its region."""
    groups: dict[int, list[tuple[int, Home]]] = defaultdict(list)
    for number, home in memory.placed.items():
        if home.on_chip:
            groups[id(home.region)].append((number, home))
    found: dict[int, Segments] = {}
    first = 0
    for members in groups.values():
        if len(members) == 1:  # whose bytes nobody takes over
            continue
        ends = {end for _, h in members for end in (h.byte, h.byte + h.pitch)}
        index = {byte: i for i, byte in enumerate(sorted(ends))}
        starts = sorted({h.partition for _, h in members})
        size = len(ends)
        for number, h in members:
            last = h.partition + executable.tensors[number].shape[0]
            low, high = first + index[h.byte], first + index[h.byte + h.pitch]
            bands = range(bisect_left(starts, h.partition), bisect_left(starts, last))
            found[number] = tuple([range(low + n * size, high + n * size) for n in bands])
        first += len(starts) * size
    return found
