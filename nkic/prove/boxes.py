"""Areas of tensors, and the cells into which areas cut a tensor.

An area is a box over the axes of the tensor's shape. It covers every byte that a pattern touches,
and more if the pattern does not run along the axes. Two accesses conflict if their areas share a
cell, so no pair of accesses is compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import getitem, itemgetter

from nkic.prove.model import Box, Range

Dims = tuple[tuple[int, int], ...]
MOST_CELLS = 1 << 16  # per tensor; beyond it neighbouring cells are merged


def area(axes: tuple[int, ...], size: int, offset: int, dims: Dims) -> Box:
    """Return the box over `axes` of the elements, of `size` bytes, that (step, num) pairs visit."""
    reach = _reach(axes, size, dims)
    if reach is not None:
        box, rest = [], offset * size
        for length, pitch, span in reach:
            first, rest = divmod(rest, pitch)
            if first + span >= length:
                return _hull(axes, size, offset, dims)
            box.append(_side(first, first + span + 1))
        return tuple(box)
    return _hull(axes, size, offset, dims)


def are_tiles(axes: tuple[int, ...], size: int, offsets: Iterable[int], dims: Dims) -> bool:
    """Return whether the areas of one pattern at different offsets certainly share no byte.

    They do not if, along each axis, they start at multiples of their own length.
    """
    reach = _reach(axes, size, dims)
    if reach is None:
        return False
    rest = [offset * size for offset in offsets]
    for length, pitch, span in reach:
        for first in {byte // pitch for byte in rest}:
            if first % (span + 1) or first + span >= length:
                return False
        rest = [byte % pitch for byte in rest]
    return True


@lru_cache(maxsize=65536)
def _side(first: int, end: int) -> Range:
    """Return an interned side: the boxes of a tensor's tiles have few different ones."""
    return first, end


@lru_cache(maxsize=4096)
def pitches(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the byte stride of each axis."""
    return tuple(prod(axes[at + 1 :]) for at in range(len(axes)))


@lru_cache(maxsize=65536)
def _reach(axes: tuple[int, ...], size: int, dims: Dims) -> tuple[tuple[int, int, int], ...] | None:
    """Return the length, stride and extent of the pattern along each axis.

    Return None if the pattern does not follow the axes.
    """
    spans = [0] * len(axes)
    for step, num in dims:
        if step < 0 < num - 1:
            return None
        if num > 1 and step > 0 and not _along(axes, spans, step * size, num):
            return None
    spans[-1] += size - 1
    return tuple(zip(axes, pitches(axes), spans, strict=True))


def _along(axes: tuple[int, ...], spans: list[int], step: int, num: int) -> bool:
    """Add `num` steps of `step` bytes to `spans`, and return whether they follow the axes.

    A run that fills an axis continues along the next outer one.
    """
    widths = pitches(axes)
    axis = next(axis for axis, width in enumerate(widths) if step % width == 0)
    step //= widths[axis]
    while axis > 0 and spans[axis] == 0 and step * num > axes[axis]:
        row, rest = divmod(axes[axis], step)
        if rest or num % row:
            return False
        spans[axis] = axes[axis] - step
        axis, step, num = axis - 1, 1, num // row
    spans[axis] += step * (num - 1)
    return True


def _hull(axes: tuple[int, ...], size: int, offset: int, dims: Dims) -> Box:
    """Return the bounding box of all bytes from the lowest to the highest."""
    ends = [step * (num - 1) for step, num in dims]
    low = (offset + sum(min(0, end) for end in ends)) * size
    high = (offset + sum(max(0, end) for end in ends)) * size + size - 1
    box, inside = [], True
    for length, pitch in zip(axes, pitches(axes), strict=True):
        (first, low), (last, high) = divmod(low, pitch), divmod(high, pitch)
        box.append((first, last + 1) if inside else (0, length))
        inside = inside and first == last
    return tuple(box)


class Grid:
    """A tensor cut at the sides of boxes. Its cells are numbered from `base`."""

    def __init__(self, boxes: Collection[Box], base: int = 0) -> None:
        rank = len(next(iter(boxes)))
        sides = [set(map(itemgetter(axis), boxes)) for axis in range(rank)]
        cuts = _thinned([sorted({end for side in axis for end in side}) for axis in sides])
        sizes = [max(1, len(axis) - 1) for axis in cuts]
        self.base = base
        self.count = prod(sizes)
        # The cells along each axis, by the side of a box, and the axis's number of cells.
        self.along = [
            ({side: _between(cut, side) for side in axis}, size)
            for axis, cut, size in zip(sides, cuts, sizes, strict=True)
        ]
        # Per axis, what a side that covers one cell adds to the cell's number.
        self.steps = [
            {side: first * stride for side, (first, count) in spans.items() if count == 1}
            for (spans, _), stride in zip(self.along, pitches(tuple(sizes)), strict=True)
        ]

    def cells(self, box: Box) -> Sequence[int]:
        """Return the numbers of the cells that `box`, one of the grid's own boxes, covers."""
        try:
            return (sum(map(getitem, self.steps, box), self.base),)
        except KeyError:
            return self._several(box)

    def _several(self, box: Box) -> Sequence[int]:
        numbers: Sequence[int] = (0,)
        for side, (spans, size) in zip(box, self.along, strict=True):
            first, count = spans[side]
            cells = range(first, first + count)
            numbers = [number * size + cell for number in numbers for cell in cells]
        return [self.base + number for number in numbers]


def _between(cuts: Sequence[int], side: Range) -> tuple[int, int]:
    """Return the first cell of a side of a box, and the number of cells, which is at least 1."""
    first = bisect_right(cuts, side[0]) - 1
    return first, max(1, bisect_left(cuts, side[1]) - first)


def _thinned(cuts: list[list[int]]) -> list[list[int]]:
    """Drop every other inner cut of the finest axis until there are few enough cells."""
    while prod(max(1, len(axis) - 1) for axis in cuts) > MOST_CELLS:
        finest = max(cuts, key=len)
        finest[:] = [*finest[:-1:2], finest[-1]]
    return cuts


def bands(starts: Sequence[int], start: int, count: int) -> range:
    """Return the bands that a tensor covers; bands are cut at the start partitions `starts`."""
    return range(bisect_left(starts, start), bisect_left(starts, start + count))
