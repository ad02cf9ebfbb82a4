"""The bytes that have been written since their tensor took them over, and reads of others.

There is one flag per granule: the largest block of bytes that no access of the program splits, so
that a tile always accessed whole has a single flag. A tensor that takes over bytes starts
uninitialised: the bytes of a former owner are not its value, although they are still in memory.

Reading an entirely uninitialised tile is a fault. Partly uninitialised tiles are tracked, into the
kernel's results too: elements that are still uninitialised there at the end are a fault of the
store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, source_of
from nkic.base.diagnostics import Diagnostic, Label, Level, ProgramFault, make
from nkic.base.text import grouped
from nkic.machine.instructions.gpsimd import CORE
from nkic.machine.instructions.tensor import GROUP, LANES, QUADRANT, SCALES_PER_QUADRANT
from nkic.machine.operands import Depends, Facts, Operand, Row
from nkic.machine.targets import TARGETS
from nkic.simulate.in_place import TensorUse, flags_of, is_whole
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import called_from, fault

if TYPE_CHECKING:
    from nkic.simulate.plans import Selections
    from nkic.simulate.streams import Item, Runner

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
        """Return which elements, of `size` bytes, of a whole tensor are initialised, flat.

        Bytes that no access touches may end within a block, so no access pattern describes the
        whole.
        """
        partitions, total = self.shape
        flags: Mask = self.array.repeat(self.rows, axis=0)[:partitions]
        flags = flags.repeat(self.columns, axis=1)[:, :total]
        if self.parts is not None:
            flags = flags | self.parts.repeat(self.grain, axis=1)[:, :total]
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


# ---- The propagation of uninitialised elements --------------------------------------------------
# A copy of a partly uninitialised tile is not yet an error: kernels move whole tiles and use the
# part that they filled. So uninitialised elements are tracked, like poison, to the first
# instruction whose result depends on all that it reads, or to a result of the kernel. This is done
# only for accesses to uninitialised bytes; `Row.depends` says how the elements of a row's results
# depend on those of its sources.


class Source(NamedTuple):
    """A tile that is read, and its initialised elements."""

    operand: Operand
    pattern: PatternRecord
    mask: Mask
    zeros: Callable[[], Mask]  # returns which elements are zero


def sources_of(
    shadow: Shadow, row: Row, record: InstructionRecord, facts: Facts, selected: Selections
) -> list[Source]:
    """Return what is read. Elements that are not `selected` from an operand count as initialised:
    nothing depends on them.
    """
    found = []
    for operand, pattern in _tiles(row, record):
        if row.access_of(operand, facts).reads:
            mask = shadow.elements(pattern)
            if operand.name in selected:
                mask |= ~selected[operand.name]().reshape(mask.shape)
            found.append(Source(operand, pattern, mask, partial(shadow.zeros, pattern)))
    return found


def results(
    shadow: Shadow, row: Row, record: InstructionRecord, facts: Facts, sources: list[Source]
) -> list[tuple[PatternRecord, Mask]] | None:
    """Return the initialised elements of each result; None if the row's rule does not apply."""
    defined = []
    for operand, pattern in _tiles(row, record):
        if row.access_of(operand, facts).writes:
            mask = _mask(row, operand, sources, shadow.shape_of(pattern), facts)
            if mask is None:
                return None
            defined.append((pattern, mask))
    return defined


def tile_of(record: InstructionRecord, name: str) -> PatternRecord:
    """Return the operand `name`, which must be a tile."""
    row = record.row
    operand = record.operands[row.operand_index[name]] if row is not None else None
    if type(operand) is not PatternRecord:
        raise TypeError(f"{name} is not a tile")
    return operand


def _tiles(row: Row, record: InstructionRecord) -> Iterator[tuple[Operand, PatternRecord]]:
    for operand, value in zip(row.operands, record.operands, strict=False):
        if type(value) is PatternRecord:
            yield operand, value


Shape = tuple[int, int]


def _mask(
    row: Row, operand: Operand, sources: list[Source], shape: Shape, facts: Facts
) -> Mask | None:
    if row.depends is Depends.QUANTIZED:
        return _quantized(sources, shape, operand.name == "dst_scale")
    return _RULES[row.depends](sources, shape, facts)


def _elementwise(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """An element depends on those at its position; a single column is broadcast to all columns."""
    mask = np.ones(shape, np.bool_)
    for source in sources:
        initialised = source.mask
        if initialised.size == mask.size:
            mask &= initialised.reshape(shape)
        elif initialised.shape[0] == shape[0]:
            mask &= (
                initialised if initialised.shape[1] == 1 else initialised.all(axis=1, keepdims=True)
            )
        else:
            return None
    return mask


def _by_partition(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    mask = np.ones(shape, np.bool_)
    for source in sources:
        if source.mask.shape[0] != shape[0]:
            return None
        mask &= source.mask.all(axis=1, keepdims=True)
    return mask


def _by_core(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    return _by_partition([*map(_of_whole_core, sources)], shape, facts)


def _of_whole_core(source: Source) -> Source:
    if source.operand.name != "index":
        return source
    cores = source.mask.reshape(-1, CORE * source.mask.shape[1])
    mask: Mask = np.logical_and.reduce(cores, axis=1, keepdims=True)
    return source._replace(mask=mask.repeat(CORE, axis=0))


def _first_of_core(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """The first partition of each GpSimd core depends on the source's; the others are unchanged."""
    masks = {source.operand.name: source.mask for source in sources}
    src, mask = masks["src"], masks.get("dst", np.ones(shape, np.bool_))
    mask[::CORE] = np.all(src[::CORE], axis=1, keepdims=True)
    return mask


def _shuffled(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Partition i of a quadrant depends on partition `shuffle_mask[i]`; 255 leaves it unchanged."""
    masks = {source.operand.name: source.mask for source in sources}
    src, mask = masks["src"], masks.get("dst", np.ones(shape, np.bool_))
    if src.shape != shape:
        return None
    for row in range(shape[0]):
        taken = facts.attributes["shuffle_mask"][row % QUADRANT]
        if taken < QUADRANT:
            mask[row] = src[row // QUADRANT * QUADRANT + taken]
    return mask


def _product(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Row m, column n of a product depend on columns m and n of the two factors.

    A product with zero is initialised: kernels pad one tile with zeros, and leave the other as it
    is.
    """
    sources_by_name = {source.operand.name: source for source in sources}
    rows, columns = _factor(sources_by_name, "stationary"), _factor(sources_by_name, "moving")
    if rows is None or columns is None or rows.written.shape[0] != columns.written.shape[0]:
        return None
    if (rows.written.shape[1], columns.written.shape[1]) != shape:
        return None
    mask = sources_by_name["dst"].mask if "dst" in sources_by_name else np.ones(shape, np.bool_)
    uninitialised = _meet(~rows.written, ~columns.zero) | _meet(~rows.zero, ~columns.written)
    return mask & ~uninitialised


class _Factor(NamedTuple):
    """A factor of a matmul: its initialised elements, and which of those are zero."""

    written: Mask
    zero: Mask


def _factor(sources_by_name: dict[str, Source], name: str) -> _Factor | None:
    source, scale = sources_by_name[name], sources_by_name.get(f"{name}_scale")
    written = source.mask
    if scale is not None:
        rows = np.arange(len(scale.mask)) % QUADRANT < SCALES_PER_QUADRANT
        spread = scale.mask[rows].repeat(GROUP, axis=0)
        if spread.shape != written.shape:
            return None
        written = written & spread
    return _Factor(written, written & source.zeros())


def _meet(one: Mask, other: Mask) -> Mask:
    """Return which columns of `one` and of `other` have a row in common."""
    common: Mask = one.T.astype(np.float32) @ other.astype(np.float32) > 0
    return common


def _quantized(sources: list[Source], shape: Shape, scales: bool) -> Mask | None:
    """A packed element depends on that column of its group: 8 partitions, 4 elements of each.

    So does the scale of the group, which is in one of the first partitions of its quadrant; the
    other partitions of scales depend on the whole quadrant.
    """
    (source,) = sources
    partitions, columns = source.mask.shape
    if columns != LANES * shape[1]:
        return None
    members = source.mask.reshape(-1, SCALES_PER_QUADRANT, GROUP, shape[1], LANES)
    groups: Mask = np.logical_and.reduce(members, axis=(2, 4))
    if scales:
        others = QUADRANT - SCALES_PER_QUADRANT
        other = np.logical_and.reduce(groups, axis=1, keepdims=True).repeat(others, axis=1)
        groups = np.concatenate([groups, other], axis=1)
    else:
        groups = groups.repeat(GROUP, axis=1)
    whole: Mask = groups.reshape(partitions, shape[1])[: shape[0]]
    return whole if whole.shape == shape else None


def _transposed(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Row i, column j depends on row j, column i."""
    (source,) = sources
    return source.mask.T.copy() if source.mask.T.shape == shape else None


_RULES = {
    Depends.ELEMENTWISE: _elementwise,
    Depends.BY_PARTITION: _by_partition,
    Depends.BY_CORE: _by_core,
    Depends.FIRST_OF_CORE: _first_of_core,
    Depends.SHUFFLED: _shuffled,
    Depends.PRODUCT: _product,
    Depends.TRANSPOSED: _transposed,
}


# --------------------------------------------------------------------------------------------------

Missing = PatternRecord | None


def _is_followed(shadow: Shadow, pattern: PatternRecord) -> bool:
    """Whether reading the access is no fault yet: it is initialised in part, or was computed."""
    unset, total = shadow.missing(pattern)
    return unset < total or pattern.tensor in shadow.origins


class Unwritten:
    """Handles accesses to uninitialised bytes: tracked if possible, else a fault."""

    def __init__(self, executable: Executable, shadows: Sequence[Shadow | None]) -> None:
        self.executable = executable
        self.shadows = shadows  # by rank
        self.results = {p.tensor for p in executable.outputs}
        # stores of uninitialised elements into results
        self.stored: list[tuple[Shadow, PatternRecord, ProgramFault]] = []

    def read(self, runner: Runner, item: Item) -> Missing:
        """Return the first operand with uninitialised bytes, or raise if any cannot be tracked."""
        shadow, found = self.shadows[runner.rank], []
        if shadow is not None and item.reads:
            operands, is_initialised = item.record.operands, shadow.is_initialised
            for i in item.reads:
                pattern: PatternRecord = operands[i]  # type: ignore[assignment]
                if not is_initialised[pattern.tensor] and not shadow.is_written(pattern):
                    found.append(pattern)
        for check, pattern in item.checks:
            if not check():
                found.append(pattern)
        for pattern in found:
            if not self._can_follow(runner, item, pattern):
                raise self._fault(runner, item, pattern)
        return found[0] if found else None

    def note(self, runner: Runner, item: Item) -> None:
        shadow = self.shadows[runner.rank]
        if shadow is not None:
            operands, is_initialised = item.record.operands, shadow.is_initialised
            for i in item.writes:
                pattern: PatternRecord = operands[i]  # type: ignore[assignment]
                if not is_initialised[pattern.tensor]:
                    shadow.note(pattern)

    def note_part(self, runner: Runner, item: Item, written: Mask) -> None:
        """Mark these elements of dst, and what else the item writes, as initialised."""
        shadow, target = self.shadows[runner.rank], tile_of(item.record, "dst")
        if shadow is None or shadow.is_initialised[target.tensor] or target.dynamic is not None:
            self.note(runner, item)
            return
        initialised = shadow.elements(target) | written.reshape(shadow.shape_of(target))
        self.note(runner, item)
        shadow.set_elements(target, initialised)

    def _can_follow(self, runner: Runner, item: Item, pattern: PatternRecord) -> bool:
        row, shadow = item.record.row, self.shadows[runner.rank]
        if row is None or row.depends is Depends.WHOLLY or item.dynamic is not None:
            return False
        if shadow is None:
            return False
        names = row.selects if item.work is not None else ()
        is_selected = any(item.record.operands[row.operand_index[n]] == pattern for n in names)
        return is_selected or _is_followed(shadow, pattern)

    def prepare(self, runner: Runner, item: Item) -> None:
        row, shadow = item.record.row, self.shadows[runner.rank]
        if row is not None and row.depends is Depends.PRODUCT and shadow is not None:
            for pattern in (*item.patterns(item.reads), *(p for _, p in item.checks)):
                if pattern.tensor not in shadow.initial:
                    shadow.clear(pattern)

    def follow(self, runner: Runner, item: Item, missing: PatternRecord) -> None:
        shadow, record = self.shadows[runner.rank], item.record
        row, selected = record.row, item.work.selected if item.work is not None else {}
        if shadow is None or row is None:
            return
        facts = self.executable.facts(record, TARGETS[self.executable.target], runner.record.engine)
        sources = sources_of(shadow, row, record, facts, selected)
        spoils = [source for source in sources if not source.mask.all()]
        read_only = [s for s in spoils if not row.access_of(s.operand, facts).writes]
        missing = next((source.pattern for source in read_only or spoils), missing)
        defined = results(shadow, row, record, facts, sources)
        if defined is None:
            raise self._fault(runner, item, missing)
        for source in read_only:  # something is selected of a tile that was never written
            if not _is_followed(shadow, source.pattern):
                raise self._fault(runner, item, source.pattern)
        for pattern, mask in defined:
            self._set(shadow, runner, item, missing, pattern, mask)

    def exchange(self, arrivals: Sequence[tuple[Runner, Item, Missing]]) -> None:
        """Record this for a rendezvous whose contributions are partly uninitialised."""
        brought = {
            (runner.rank, runner.core): (missing, self._brought(runner, missing))
            for runner, _, missing in arrivals
        }
        for runner, item, _ in arrivals:
            shadow, source = self.shadows[runner.rank], item.rendezvous and item.rendezvous.source
            if shadow is None or source is None:
                continue
            missing, mask = brought[runner.rank, source]
            if missing is not None:
                target = tile_of(item.record, "dst")
                self._set(shadow, runner, item, missing, target, mask)

    def finish(self) -> None:
        """Raise the fault of the first store that left uninitialised elements in a result."""
        for shadow, pattern, fault_of_store in self.stored:
            if not shadow.elements(pattern).all():
                raise fault_of_store

    def _brought(self, runner: Runner, missing: Missing) -> Mask:
        shadow = self.shadows[runner.rank]
        if shadow is None or missing is None:
            return np.ones((1, 1), np.bool_)
        return shadow.elements(missing)

    def _set(
        self,
        shadow: Shadow,
        runner: Runner,
        item: Item,
        missing: PatternRecord,
        pattern: PatternRecord,
        mask: Mask,
    ) -> None:
        if pattern.tensor in self.results and not mask.all():
            found = self._fault(runner, item, missing)
            if pattern.tensor in shadow.initial:  # reads of it are not checked
                raise found
            self.stored.append((shadow, pattern, found))
        origin = shadow.origins.get(missing.tensor, (item.record.place, missing.tensor))
        if pattern.tensor != origin[1] and not mask.all():
            shadow.origins.setdefault(pattern.tensor, origin)
        shadow.set_elements(pattern, mask.reshape(shadow.shape_of(pattern)))

    def _fault(self, runner: Runner, item: Item, missing: PatternRecord) -> ProgramFault:
        record, row = item.record, item.record.row
        shadow = self.shadows[runner.rank] if missing.dynamic is None else None
        unset, total = shadow.missing(missing) if shadow is not None else (0, 0)
        origin = shadow.origins.get(missing.tensor) if shadow is not None else None
        name = self.executable.tensors[missing.tensor].name
        first = self.executable.tensors[origin[1]].name if origin is not None else name
        cause = f", computed from uninitialised bytes of `{first}`"
        reason = " before it is written" if first == name else cause
        part = "" if unset == total else f" ({unset} of the {total} parts it reads)"
        return fault(
            self.executable,
            "uninitialised-read",
            f"{row.name if row else ''} reads `{name}`{reason}{part}",
            record.place,
            missing.tensor,
            help=f"write `{first}` first: load it, or fill it with nisa.memset",
            labels=self._source(origin),
        )

    def _source(self, origin: tuple[int, int] | None) -> list[Label]:
        """Return a label at the origin of the uninitialised bytes, if it is another tensor."""
        span = source_of(self.executable, origin[0]) if origin is not None else None
        if origin is None or span is None:
            return []
        first = self.executable.tensors[origin[1]].name
        return [Label(span, f"the uninitialised bytes of `{first}` are read here")]


# ---- uninitialised results ----


def never_written(executable: Executable, shadow: Shadow) -> list[Diagnostic]:
    """Return a warning for each output that is not fully written, in order.

    An output that is also an input has been written by the caller.
    """
    warnings = []
    for number, output in enumerate(executable.outputs):
        if output.tensor in shadow.initial:
            continue
        missing = _missing(executable, shadow, output.tensor)
        if missing:
            warnings.append(_not_written(executable, number, missing))
    return warnings


def _missing(executable: Executable, shadow: Shadow, tensor: int) -> str:
    """Describe the unwritten part of an HBM tensor; empty if all is written."""
    if shadow.is_initialised[tensor]:
        return ""
    flags, record = shadow.flags.get(tensor), executable.tensors[tensor]
    if flags is None:
        return "all"
    if flags.array.all():
        return ""
    count = prod(record.shape)
    written = flags.whole(record.dtype.size)
    unset = count - int(np.count_nonzero(written))
    if unset in (0, count):
        return "all" if unset else ""
    first = [int(i) for i in np.unravel_index(int(written.argmin()), record.shape)]
    return f"{grouped(unset)} of its {grouped(count)} elements, the first at {first}"


def _not_written(executable: Executable, number: int, missing: str) -> Diagnostic:
    output = executable.outputs[number]
    record = executable.tensors[output.tensor]
    name = f"output {number}, `{record.name}`,"
    slug, text = "output-not-written", f"{name} was not written by any instruction that ran"
    if missing != "all":
        slug, text = "output-partly-written", f"{name} was written only in part: not {missing}"
    return make(
        slug,
        text,
        source_of(executable, record.place),
        labels=called_from(executable, record.place),
        help="write all of it: unwritten HBM holds arbitrary data",
        level=Level.WARNING,
    )
