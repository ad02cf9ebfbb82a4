"""Bounding boxes of accesses, and the cells that decide which accesses overlap.

A box is a half-open range per axis of the tensor's own shape: partitions first if the tensor is on
chip, and the innermost axis in bytes. `box` is conservative: it covers every byte that a pattern
touches, and may cover more if the pattern does not follow the tensor's axes (a step inside an axis,
a negative step, a run that wraps, a run-time offset).

`Cells` cuts a tensor at the boundaries of all its boxes, so that two accesses conflict exactly if
they share a cell. Dependence analysis then needs no pairwise tests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from nkic.machine.dtypes import DType
from nkic.machine.patterns import bounds
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Operand,
    Program,
    Tensor,
    View,
    instructions,
)

Range = tuple[int, int]
Box = tuple[Range, ...]
MAX_CELLS = 4096  # per tensor; beyond that, neighbouring cells are merged
SPARSE = 4  # tiles of a tensor for each that is accessed, at most, to look for tiles at all


def box(pattern: AccessPattern) -> Box:
    """Return a box that covers every byte `pattern` may touch."""
    tensor, dtype, start, partitions, offset, dims, dynamic = pattern
    if dynamic is not None:
        axes = axes_of(tensor)
        return tuple((0, size) for size in ((tensor.partitions, *axes) if tensor.on_chip else axes))
    if not tensor.on_chip:
        return hbm_box(tensor, offset, dims, dtype.size)
    end = start + partitions
    return _tile_box(tensor.shape, tensor.dtype.size, start, end, offset, dims, dtype.size)


def hbm_box(tensor: Tensor, offset: int, dims: tuple[tuple[int, int], ...], size: int) -> Box:
    """Return the box of `dims` in an HBM tensor, from element `offset`, for elements of `size`
    bytes.
    """
    return _free_box(_axes(tensor.shape, tensor.dtype.size), offset, dims, size)


@lru_cache(maxsize=65536)
def _tile_box(
    shape: tuple[int, ...],
    own_size: int,
    start: int,
    end: int,
    offset: int,
    dims: tuple[tuple[int, int], ...],
    size: int,
) -> Box:
    """Return the box of an access to an on-chip tensor whose elements have `own_size` bytes."""
    return ((start, end), *_free_box(_axes(shape[1:], own_size), offset, dims, size))


@lru_cache(maxsize=4096)
def _axes(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    sizes = shape or (1,)
    return (*sizes[:-1], sizes[-1] * size)


def axes_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the axis lengths of the storage without the partition axis; the innermost in bytes."""
    shape = tensor.shape[1:] if tensor.on_chip else tensor.shape
    return _axes(shape, tensor.dtype.size)


def _free_box(
    axes: tuple[int, ...], offset: int, dims: tuple[tuple[int, int], ...], size: int
) -> Box:
    """Return `offset` and `dims` (in elements of `size` bytes) as a box over `axes`."""
    reach = _reach(axes, dims, size)
    if reach is None:
        return _hull(axes, offset, dims, size)
    ranges, remaining = [], offset * size
    for pitch, extent, length in reach:
        digit, remaining = divmod(remaining, pitch)
        if digit + extent >= length:
            return _hull(axes, offset, dims, size)
        ranges.append(_range(digit, digit + extent + 1))
    return tuple(ranges)


@lru_cache(maxsize=65536)
def _range(low: int, high: int) -> Range:
    """Return an interned range: the boxes of a large tensor share few boundaries."""
    return low, high


@lru_cache(maxsize=65536)
def _reach(
    axes: tuple[int, ...], dims: tuple[tuple[int, int], ...], size: int
) -> tuple[tuple[int, int, int], ...] | None:
    """Return the pitch, the reach of the pattern and the length, for each axis.

    None if the pattern does not follow the axes.
    """
    pitches = _pitches(axes)
    reach = [0] * len(axes)
    for step, num in dims:
        if num > 1 and not _place(reach, pitches, axes, step * size, num):
            return None
    reach[-1] += size - 1  # bytes of the innermost element after its first
    return tuple(zip(pitches, reach, axes, strict=True))


def _place(
    reach: list[int], pitches: list[int], axes: tuple[int, ...], step: int, num: int
) -> bool:
    """Add the dimension (step, num), in bytes, to the axes it runs along; False if it fits none."""
    if step < 0:
        return False
    axis = next(axis for axis, pitch in enumerate(pitches) if step % pitch == 0)
    return _spread(reach, axes, axis, step // pitches[axis], num)


def _spread(reach: list[int], axes: tuple[int, ...], axis: int, step: int, num: int) -> bool:
    """Add a run along `axis`; a run that fills it exactly continues along the next outer axis."""
    while axis and reach[axis] == 0 and step * num > axes[axis]:
        if axes[axis] % step or num % (axes[axis] // step):
            return False
        reach[axis] = axes[axis] - step
        num //= axes[axis] // step
        axis, step = axis - 1, 1
    reach[axis] += step * (num - 1)
    return True


@lru_cache(maxsize=4096)
def _pitch_tuple(axes: tuple[int, ...]) -> tuple[int, ...]:
    pitches = [1]
    for length in reversed(axes[1:]):
        pitches.append(pitches[-1] * length)
    return tuple(reversed(pitches))


def _pitches(axes: tuple[int, ...]) -> list[int]:
    return list(_pitch_tuple(axes))


def _digits(byte: int, pitches: Sequence[int]) -> list[int]:
    digits = []
    for pitch in pitches:
        digit, byte = divmod(byte, pitch)
        digits.append(digit)
    return digits


def _hull(axes: tuple[int, ...], offset: int, dims: tuple[tuple[int, int], ...], size: int) -> Box:
    """Return the smallest box around the bytes from the lowest to the highest one touched."""
    pitches, ends = _pitches(axes), [step * (num - 1) for step, num in dims]
    low = (offset + sum(min(e, 0) for e in ends)) * size
    high = (offset + sum(max(e, 0) for e in ends) + 1) * size - 1
    first, last = _digits(low, pitches), _digits(high, pitches)
    ranges: list[Range] = []
    split = False
    for a, b, length in zip(first, last, axes, strict=True):
        ranges.append((0, length) if split else (a, b + 1))
        split = split or a != b
    return tuple(ranges)


def tiling(
    axes: tuple[int, ...], dims: tuple[tuple[int, int], ...], size: int, most: int
) -> set[int] | None:
    """Return the offsets at which boxes of `dims` cover `axes` side by side, in elements.

    None if boxes of this form do not, or if it takes more than `most`.
    """
    reach = _reach(axes, dims, size)
    if reach is None or any(length % (extent + 1) for _, extent, length in reach):
        return None
    steps = [(pitch * (extent + 1), pitch * length) for pitch, extent, length in reach]
    if prod(end // step for step, end in steps) > most or any(step % size for step, _ in steps):
        return None
    offsets = [0]
    for step, end in steps:
        along = range(0, end // size, step // size)
        offsets = [offset + more for offset in offsets for more in along]
    return set(offsets)


def are_tiles(patterns: Sequence[AccessPattern]) -> bool:
    """Return whether the boxes of patterns of one tensor are tiles of one form, side by side.

    Then each is a cell. False if there are so many that `Cells` would merge some.
    """
    tensor, dtype, start, partitions, _, dims, _ = patterns[0]
    offsets = []
    for _, own_dtype, own_start, own_partitions, offset, own_dims, dynamic in patterns:
        if own_dims is not dims or own_dtype is not dtype or dynamic is not None:
            return False
        if own_start != start or own_partitions != partitions:
            return False
        offsets.append(offset)
    distinct, most = set(offsets), min(SPARSE * len(offsets), MAX_CELLS)
    tiles = tiling(axes_of(tensor), dims, dtype.size, most)
    return tiles is not None and len(distinct) == len(offsets) and tiles.issuperset(distinct)


class Cells:
    """A tensor cut at the boundaries of the given boxes, into `count` cells numbered from `first`.

    Each of the boxes is a set of whole cells.
    """

    def __init__(self, boxes: Iterable[Box], first: int = 0) -> None:
        self._first = first
        distinct = list(boxes if isinstance(boxes, Mapping) else dict.fromkeys(boxes))
        self._axes: list[tuple[int, dict[int, int], dict[int, int]]] = []
        if len(distinct) == 1:
            self.count = 1
            return
        rank = len(distinct[0])
        sides = [{side for b in distinct for side in b[axis]} for axis in range(rank)]
        self.cuts = _coarsened([sorted(axis) for axis in sides])
        both = list(zip(sides, self.cuts, strict=True))
        self.sizes = [max(1, len(c) - 1) for c in self.cuts]
        self.count = prod(self.sizes)
        low = [{side: bisect_left(c, side + 1) - 1 for side in axis} for axis, c in both]
        high = [{side: bisect_left(c, side) for side in axis} for axis, c in both]
        self._axes = list(zip(self.sizes, low, high, strict=True))

    def __getitem__(self, box: Box) -> tuple[int, ...]:
        """Return the cells of `box`, which must be one of the given boxes."""
        if not self._axes:
            return (self._first,)
        number = 0
        for (low, high), (size, lows, highs) in zip(box, self._axes, strict=True):
            first = lows[low]
            if highs[high] > first + 1:
                return self._multiple(box)
            number = number * size + first
        return (self._first + number,)

    def _multiple(self, box: Box) -> tuple[int, ...]:
        numbers = [0]
        for (low, high), (size, lows, highs) in zip(box, self._axes, strict=True):
            positions = range(lows[low], max(lows[low] + 1, highs[high]))
            numbers = [number * size + position for number in numbers for position in positions]
        return tuple([self._first + number for number in numbers])


def _coarsened(cuts: list[list[int]]) -> list[list[int]]:
    """Drop every other inner cut of the finest axis until there are at most MAX_CELLS cells."""
    while True:
        if prod(max(1, len(c) - 1) for c in cuts) <= MAX_CELLS:
            return cuts
        axis = max(range(len(cuts)), key=lambda a: len(cuts[a]))
        finest = cuts[axis]
        cuts[axis] = [*finest[:-1:2], finest[-1]]


class Bands:
    """The partition axis, cut at the start of every tensor: the side-by-side groups of tensors.

    Tensors that start at the same partition share a band; most programs have one band.
    """

    def __init__(self, starts: Iterable[int]) -> None:
        self.starts = sorted(set(starts))

    def of(self, start: int, partitions: int) -> range:
        """Return the bands of a tensor; `start` must be one of the given starts."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, start + partitions))


# ------------------------------------------------------------------------------------------------
# Groups of like instructions: what check and lower find out about the first holds for all.
# The instructions that a loop makes of one expression mostly differ only in their tensors and
# offsets.

MAX_GROUPS = 4  # of a location, to which an instruction is compared


class _Likeness(NamedTuple):
    """What the views of like instructions share, and the range of their offsets."""

    operand: Operand  # of the first instruction
    tensor: Tensor | None = None  # None: no other operand is like it
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: DType | None = None
    low: int = 0
    high: int = 0


class Group:
    """Like instructions of one location: `first`, and `repeats` more.

    They have one row, equal attributes, engine and operands, except that a view may be one of
    another tensor with the same declaration, and may have another offset. If the first view is
    inside its tensor, all are, and on chip they begin at the same partition.
    """

    __slots__ = ("_operands", "_rest", "first", "repeats")

    def __init__(self, first: Instruction) -> None:
        self.first = first
        self.repeats = 0
        self._rest = first.row, first.attributes, first.engine
        self._operands: list[_Likeness] | None = None

    def admits(self, instruction: Instruction) -> bool:
        """Return whether `instruction` is like the first, whose location it has."""
        row, attributes, engine = self._rest
        own_row, operands, own_attributes, own_engine, _, _, _, _, _, _, _ = instruction
        if own_row is not row or own_engine is not engine:
            return False
        if own_attributes is not attributes and not _equal(own_attributes, attributes):
            return False
        if self._operands is None:
            self._operands = [_likeness(operand) for operand in self.first.operands]
        for operand, known in zip(operands, self._operands):  # noqa: B905  (those of one row)
            first, first_tensor, first_shape, first_strides, first_dtype, low, high = known
            if operand is first:
                continue
            if first_tensor is None or type(operand) is not View:
                return False
            tensor, shape, strides, offset, dtype, dynamic = operand
            if dtype is not first_dtype or dynamic is not None or not low <= offset <= high:
                return False
            if shape != first_shape or strides != first_strides:
                return False
            if tensor is first_tensor:
                continue
            # Compare the declarations, as far as stages before allocate see them.
            if tensor.shape != first_tensor.shape or tensor.dtype is not first_tensor.dtype:
                return False
            if tensor.buffer is not first_tensor.buffer or tensor.first != first_tensor.first:
                return False
        return True


Groups = Sequence[Sequence[Group]]  # of each instruction, in program order, by core


def grouped(program: Program) -> Groups:
    """Return the group of each instruction of each core, in program order."""
    recent: dict[int, list[Group]] = {}  # by id of the location, which the program keeps alive
    return tuple([_grouped(body, recent) for body in program.cores])


def _grouped(body: Body, recent: dict[int, list[Group]]) -> Sequence[Group]:
    groups: list[Group] = []
    for instruction in instructions(body):
        known = recent.get(id(instruction.at))
        if known is None:
            known = recent[id(instruction.at)] = []
        for group in known:
            if group.admits(instruction):
                group.repeats += 1
                break
        else:
            group = Group(instruction)
            known.insert(0, group)
            del known[MAX_GROUPS:]
        groups.append(group)
    return groups


def _likeness(operand: Operand) -> _Likeness:
    if type(operand) is not View or operand.dynamic is not None:
        return _Likeness(operand)
    tensor, shape, strides, _, dtype, _ = operand
    return _Likeness(operand, tensor, shape, strides, dtype, *_room(operand))


def _room(view: View) -> tuple[int, int]:
    """Return the lowest and highest offset at which a view is inside its tensor.

    On chip it stays at its partitions.
    """
    tensor, shape, strides, offset, dtype, _ = view
    if not tensor.on_chip:
        low, high = bounds(tuple(zip(strides, shape, strict=True)))
        return -low, tensor.bytes // dtype.size - 1 - high
    low, high = bounds(tuple(zip(strides[1:], shape[1:], strict=True)))
    pitch = max(1, view.pitch)
    row = offset // pitch * pitch
    return row - low, row + pitch - 1 - high


def _equal(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Compare values and types: 1, 1.0 and True are equal in Python, but not to a rule."""
    return some == others and [*map(type, some)] == [*map(type, others)]
