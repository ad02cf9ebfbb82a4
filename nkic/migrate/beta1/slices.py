"""Indexing by index expressions, as slices: `t[i_p, k * 512 + i_f]` → `t[0:128, k * 512:…]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import libcst as cst

from nkic.migrate.beta1.indices import Axis, Index, Indices, added, code, less, times

Limits = Mapping[Axis, tuple[str, str]]
"""For axes of a mask: the first element that is there, and the one behind the last."""


class NotSlices(Exception):
    """An index that slices cannot say; the text says why."""


class SeveralAxes(NotSlices):
    """An index that slices cannot say, and a view may."""


def is_indexed(indices: Indices, node: cst.BaseExpression) -> bool:
    """The expression is a tensor indexed by index expressions."""
    if not isinstance(node, cst.Subscript) or indices.has_index(node.value):
        return False
    return any(
        isinstance(one.slice, cst.Index) and indices.has_index(one.slice.value)
        for one in node.slice
    )


def sliced(indices: Indices, node: cst.Subscript, limits: Limits) -> list[str]:
    """What stands between the brackets, one text for each dimension. Raises `NotSlices`."""
    found = [_index(indices, one) for one in node.slice]
    rank = max(one.rank for one in found if one is not None)
    if any(one is None for one in found):
        raise NotSlices("slices and index expressions stand in one index")
    dims = [one for one in found if one is not None]
    places = [[axis.place for _, axis in one.parts] for one in dims]
    if any(len(one) > 1 for one in places):
        raise SeveralAxes("two axes are added in one dimension: t.ap(pattern) says that")
    order = [one[0] for one in places if one]
    if order != sorted(set(order)):
        raise SeveralAxes("its axes are not in the order of the dimensions: t.ap(pattern) says so")
    single = _single(places, rank)
    return [
        _slice(one, limits) if one.parts else (_one(one.base) if n in single else one.base)
        for n, one in enumerate(dims)
    ]


def sliced_or_ap(indices: Indices, node: cst.Subscript, limits: Limits) -> list[str] | str:
    """What stands between the brackets, or `.ap(…)` where no slices say it. Raises `NotSlices`."""
    try:
        return sliced(indices, node, limits)
    except NotSlices:
        return pattern(indices, node, limits)


def _index(indices: Indices, element: cst.SubscriptElement) -> Index | None:
    if not isinstance(element.slice, cst.Index):
        return None
    found = indices.of(element.slice.value)
    if found is None:
        text = code(element.slice.value)
        raise NotSlices(f"`{text}` is no sum of numbers and axes, or what it is made of changes")
    return found


def _single(places: Sequence[Sequence[int]], rank: int) -> set[int]:
    """The dimensions with a number that stand for an axis of one element in the result."""
    found: set[int] = set()
    free: list[int] = []
    wanted = 0
    for dim, here in enumerate(places):
        if not here:
            free.append(dim)
            continue
        found |= _last(free, here[0] - wanted)
        free, wanted = [], here[0] + 1
    return found | _last(free, rank - wanted)


def _last(free: Sequence[int], count: int) -> set[int]:
    if count > len(free):
        raise NotSlices("the result has more dimensions than the index: reshape it")
    return set(free[len(free) - count :])


def _one(base: str) -> str:
    return f"{base}:{added(base, '1')}"


def _slice(index: Index, limits: Limits) -> str:
    (step, axis), *_ = index.parts
    first, last = limits.get(axis, ("0", axis.count))
    base = added(index.base, times(step, axis.start))
    low = added(base, times(step, first))
    if step == "1":
        return f"{low}:{added(base, last)}"
    if step.startswith("-"):
        raise NotSlices("an axis runs backwards")
    end = added(base, added(times(step, less(last, "1")), "1"))
    return f"{low}:{end}:{step}"


def limited(axis: Axis, limits: Limits) -> Axis:
    """The axis with what a mask leaves of it."""
    if axis not in limits:
        return axis
    low, high = limits[axis]
    return replace(axis, start=added(axis.start, low), count=less(high, low))


def subscript(value: cst.BaseExpression, texts: Sequence[str]) -> cst.Subscript:
    """`value[texts]`."""
    made = cst.parse_expression(f"x[{', '.join(texts)}]")
    assert isinstance(made, cst.Subscript)
    return made.with_changes(value=value)


def viewed(indices: Indices, node: cst.Subscript, skip: int = 0) -> str:
    """What follows the tensor's name where a dimension is made of several axes: slices, a shape in
    which each axis has a dimension, and their order; without the first dimensions, if some are
    those of a list. Raises `NotSlices`.
    """
    dims = _sums(indices, node)[skip:]
    slices, shape, order = [], [], []
    for one in dims:
        axes = _nested(one)
        slices.append(f"0:{_product([axis.count for axis in axes])}")
        shape += [axis.count for axis in axes]
        order += [axis.place for axis in axes]
    rank = max(one.rank for one in dims)
    if sorted(order) != list(range(rank)):
        raise NotSlices("a dimension of the result is no axis of the index")
    text = f"[{', '.join(slices)}].reshape(({', '.join(shape)}))"
    if order == sorted(order):
        return text
    return f"{text}.permute({tuple(order.index(place) for place in range(rank))})"


def _nested(index: Index) -> list[Axis]:
    """The axes of a dimension that they cover without a gap: `n * i + j`, j below n."""
    if index.base != "0" or not index.parts:
        raise NotSlices("a view of several axes begins at 0 in each dimension")
    axes: list[Axis] = []
    step = "1"
    for text, axis in sorted(index.parts, key=lambda one: one[0] != "1"):
        if text != step or axis.start != "0":
            raise NotSlices("an axis leaves out elements: t.ap(pattern) says that")
        axes.insert(0, axis)
        step = axis.count if step == "1" else times(step, axis.count)
    return axes


def _product(counts: Sequence[str]) -> str:
    text = "1"
    for count in counts:
        text = times(text, count)
    return text


def counts(indices: Indices, node: cst.BaseExpression) -> str:
    """The shape of a tensor indexed by index expressions, "" where they do not say it."""
    if not is_indexed(indices, node):
        return ""
    assert isinstance(node, cst.Subscript)
    try:
        dims = _sums(indices, node)
    except NotSlices:
        return ""
    found = {axis.place: axis.count for one in dims for _, axis in one.parts}
    rank = max(one.rank for one in dims)
    texts = [found.get(place, "1") for place in range(rank)]
    return f"({', '.join(texts)}{',' * (rank == 1)})"


# ---- access patterns -----------------------------------------------------------------------------


def pattern(
    indices: Indices, node: cst.Subscript, limits: Limits, order: Sequence[int] = ()
) -> str:
    """`.ap([[step, count], …], offset=…)` of a tensor as a whole, its axes in another order if
    one is given. Raises `NotSlices`.
    """
    name = node.value
    if not isinstance(name, cst.Name) or not indices.is_whole(name):
        raise NotSlices("two axes are added in one dimension, or stand in another order")
    dims = _sums(indices, node)
    rank = max(one.rank for one in dims)
    steps = [_stride(name.value, dim, len(dims)) for dim in range(len(dims))]
    pairs: dict[int, tuple[str, str]] = {}
    offset = "0"
    for one, step in zip(dims, steps, strict=True):
        offset = added(offset, times(one.base, step))
        for text, axis in one.parts:
            axis = limited(axis, limits)
            offset = added(offset, times(times(text, axis.start), step))
            before = pairs.get(axis.place, ("0", axis.count))[0]
            pairs[axis.place] = added(before, times(text, step)), axis.count
    found = _in_order(pairs, rank)
    texts = ["[{}, {}]".format(*found[place]) for place in order or range(rank)]
    tail = f", offset={offset}" if offset != "0" else ""
    return f".ap([{', '.join(texts)}]{tail})"


def _sums(indices: Indices, node: cst.Subscript) -> list[Index]:
    found = [_index(indices, one) for one in node.slice]
    dims = [one for one in found if one is not None]
    if len(dims) != len(node.slice):
        raise NotSlices("slices and index expressions stand in one index")
    return dims


def _in_order(pairs: Mapping[int, tuple[str, str]], rank: int) -> list[tuple[str, str]]:
    return [pairs.get(place, ("1", "1")) for place in range(rank)]


def _stride(name: str, dim: int, rank: int) -> str:
    text = "1"
    for later in range(dim + 1, rank):
        text = times(text, f"{name}.shape[{later}]")
    return text
