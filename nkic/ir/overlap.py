"""Which bytes an access may touch, as boxes, and which accesses share some.

A box is a half-open range per axis of the tensor's own shape: partitions first where the
tensor is on chip, the innermost axis in bytes. `box` covers the pattern: it never leaves out
a byte that is touched, and may add some where the pattern does not follow the tensor's axes
(a step inside an axis, a negative step, a run that wraps, a run-time offset).

`Cells` cuts a tensor along the sides of all its boxes, so that two accesses conflict exactly
when they share a cell; dependence then needs no pairwise tests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod

from nkic.ir.tensors import AccessPattern, Tensor

Range = tuple[int, int]
Box = tuple[Range, ...]
MAX_CELLS = 4096  # per tensor; beyond it neighbouring cells are joined


def box(pattern: AccessPattern) -> Box:
    """The part of the tensor that `pattern` may touch."""
    tensor, dtype, start, partitions, offset, dims, dynamic = pattern
    if dynamic is not None:
        axes = axes_of(tensor)
        return tuple((0, size) for size in ((tensor.partitions, *axes) if tensor.on_chip else axes))
    if not tensor.on_chip:
        return hbm_box(tensor, offset, dims, dtype.size)
    end = start + partitions
    return _tile_box(tensor.shape, tensor.dtype.size, start, end, offset, dims, dtype.size)


def hbm_box(tensor: Tensor, offset: int, dims: tuple[tuple[int, int], ...], size: int) -> Box:
    """The part of a tensor in HBM from element `offset` on, of `size` bytes."""
    return _free_box(_axes(tensor.shape, tensor.dtype.size), offset, dims, size)


@lru_cache(maxsize=65536)
def _tile_box(
    shape: tuple[int, ...],
    own: int,
    start: int,
    end: int,
    offset: int,
    dims: tuple[tuple[int, int], ...],
    size: int,
) -> Box:
    """The part of a tensor on chip, whose elements have `own` bytes."""
    return ((start, end), *_free_box(_axes(shape[1:], own), offset, dims, size))


@lru_cache(maxsize=4096)
def _axes(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    sizes = shape or (1,)
    return (*sizes[:-1], sizes[-1] * size)


def axes_of(tensor: Tensor) -> tuple[int, ...]:
    """Axis lengths of the storage without the partition axis; the innermost in bytes."""
    shape = tensor.shape[1:] if tensor.on_chip else tensor.shape
    return _axes(shape, tensor.dtype.size)


def _free_box(
    axes: tuple[int, ...], offset: int, dims: tuple[tuple[int, int], ...], size: int
) -> Box:
    """`offset` and `dims` (in elements of `size` bytes) as a box over `axes`."""
    reach = _reach(axes, dims, size)
    if reach is None:
        return _hull(axes, offset, dims, size)
    ranges, rest = [], offset * size
    for pitch, extent, length in reach:
        digit, rest = divmod(rest, pitch)
        if digit + extent >= length:
            return _hull(axes, offset, dims, size)
        ranges.append(_range(digit, digit + extent + 1))
    return tuple(ranges)


@lru_cache(maxsize=65536)
def _range(low: int, high: int) -> Range:
    """One object for all equal ones: large tensors are touched in many places along few sides."""
    return low, high


@lru_cache(maxsize=65536)
def _reach(
    axes: tuple[int, ...], dims: tuple[tuple[int, int], ...], size: int
) -> tuple[tuple[int, int, int], ...] | None:
    """By axis: its pitch, how far the pattern reaches along it, and its length; None where the
    pattern does not follow the axes.
    """
    pitches = _pitches(axes)
    reach = [0] * len(axes)
    for step, num in dims:
        if num > 1 and not _place(reach, pitches, axes, step * size, num):
            return None
    reach[-1] += size - 1  # bytes past the first that the innermost element covers
    return tuple(zip(pitches, reach, axes, strict=True))


def _place(
    reach: list[int], pitches: list[int], axes: tuple[int, ...], step: int, num: int
) -> bool:
    """Adds the dimension (step, num), in bytes, to the axes it runs along."""
    if step < 0:
        return False
    axis = next(axis for axis, pitch in enumerate(pitches) if step % pitch == 0)
    return _spread(reach, axes, axis, step // pitches[axis], num)


def _spread(reach: list[int], axes: tuple[int, ...], axis: int, step: int, num: int) -> bool:
    """A run along `axis`; a run that fills it exactly goes on along the axis outside."""
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
    """The smallest box around the bytes from the lowest to the highest touched."""
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


class Cells:
    """A tensor cut along the sides of the given boxes; each box is a set of whole cells, which
    are numbered from 0 to `count`.
    """

    def __init__(self, boxes: Iterable[Box]) -> None:
        distinct = list(boxes if isinstance(boxes, Mapping) else dict.fromkeys(boxes))
        self._axes: list[tuple[int, dict[int, int], dict[int, int]]] = []
        if len(distinct) == 1:
            self.count = 1
            return
        rank = len(distinct[0])
        sides = [{side for b in distinct for side in b[axis]} for axis in range(rank)]
        self.cuts = _limited([sorted(own) for own in sides])
        both = list(zip(sides, self.cuts, strict=True))
        self.sizes = [max(1, len(c) - 1) for c in self.cuts]
        self.count = prod(self.sizes)
        low = [{side: bisect_left(c, side + 1) - 1 for side in own} for own, c in both]
        high = [{side: bisect_left(c, side) for side in own} for own, c in both]
        self._axes = list(zip(self.sizes, low, high, strict=True))

    def __getitem__(self, box: Box) -> tuple[int, ...]:
        """The cells of a box that was given."""
        if not self._axes:
            return (0,)
        number = 0
        for (low, high), (size, lows, highs) in zip(box, self._axes, strict=True):
            first = lows[low]
            if highs[high] > first + 1:
                return self._several(box)
            number = number * size + first
        return (number,)

    def _several(self, box: Box) -> tuple[int, ...]:
        numbers = [0]
        for (low, high), (size, lows, highs) in zip(box, self._axes, strict=True):
            here = range(lows[low], max(lows[low] + 1, highs[high]))
            numbers = [number * size + position for number in numbers for position in here]
        return tuple(numbers)


def _limited(cuts: list[list[int]]) -> list[list[int]]:
    """Drops every other inner cut of the finest axis until there are few enough cells."""
    while True:
        if prod(max(1, len(c) - 1) for c in cuts) <= MAX_CELLS:
            return cuts
        axis = max(range(len(cuts)), key=lambda a: len(cuts[a]))
        finest = cuts[axis]
        cuts[axis] = [*finest[:-1:2], finest[-1]]


class Bands:
    """The partitions cut wherever a tensor begins: which tensors lie side by side.

    Tensors that begin at one partition share its band; most programs have one band.
    """

    def __init__(self, starts: Iterable[int]) -> None:
        self.starts = sorted(set(starts))

    def of(self, start: int, partitions: int) -> range:
        """The bands of a tensor; `start` is one of the starts given."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, start + partitions))
