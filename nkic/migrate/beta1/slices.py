"""Index expressions as slices: `t[i_p, k * 512 + i_f]` → `t[0:128, k * 512:…]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import libcst as cst

from nkic.migrate.beta1.indices import (
    Axis,
    Index,
    Indices,
    added,
    code,
    index_values,
    is_whole,
    less,
    negative,
    times,
    tuple_of,
)
from nkic.migrate.sheet import walk

# ------------------------------------------------------------------------------------------------
# Index expressions with elements of tiles, known at run time: `t[i_p, start[0, k] + i_f]`.
# Later versions express them as the `scalar_offset` of an access pattern.


class Dynamic(NamedTuple):
    """A dimension whose index contains a tile's element: the dimension, the element as a tile, and
    the rest of the sum.
    """

    dim: int
    element: str
    rest: Index


def dynamic(indices: Indices, node: cst.Subscript) -> Dynamic | None:
    """Return the run-time part of an index; None if there is none, or if it cannot be separated."""
    elements = [
        (dim, tile, element.slice.value)
        for dim, element in enumerate(node.slice)
        if isinstance(element.slice, cst.Index)
        for tile in walk(element.slice.value)
        if isinstance(tile, cst.Subscript) and _is_element(indices, tile)
    ]
    if len(elements) != 1:
        return None
    dim, tile, value = elements[0]
    index = _without(indices, value, tile)
    if index is None:
        return None
    texts = [code(item.slice) for item in tile.slice]
    slices = ", ".join(f"{text}:{added(text, '1')}" for text in texts)
    return Dynamic(dim, f"{code(tile.value)}[{slices}]", index)


def _is_element(indices: Indices, node: cst.Subscript) -> bool:
    """Whether the expression is a single element of a tile."""
    name = node.value
    if not isinstance(name, cst.Name) or not indices.is_whole(name) or not indices.is_tile(name):
        return False
    values = (value for _, value in indices.definitions(name))
    ranks = {len(tensor.shape) for value in values for tensor in indices.tensors(value)}
    numbers = [value for value in index_values(node) if not indices.has_index(value)]
    return len(numbers) == len(node.slice) and ranks == {len(node.slice)}


def _without(indices: Indices, node: cst.BaseExpression, tile: cst.Subscript) -> Index | None:
    """Return what is added to the element of a tile; None if it is not a plain sum."""
    if node is tile:
        return Index("0")
    if not any(inner is tile for inner in walk(node)):
        return indices.of(node)
    if not isinstance(node, cst.BinaryOperation):
        return None
    is_right = any(inner is tile for inner in walk(node.right))
    if not isinstance(node.operator, cst.Add) and (
        is_right or not isinstance(node.operator, cst.Subtract)
    ):
        return None
    left, right = (_without(indices, expression, tile) for expression in (node.left, node.right))
    if left is None or right is None:
        return None
    right = right if isinstance(node.operator, cst.Add) else negative(right)
    return Index(added(left.base, right.base), (*left.parts, *right.parts))


# --------------------------------------------------------------------------------------------------

Limits = Mapping[Axis, tuple[str, str]]
"""For axes of a mask: the first selected element, and the one after the last."""


class NotSlices(Exception):
    """An index that slices cannot express; the text explains why."""


class SeveralAxes(NotSlices):
    """An index that slices cannot express, but a view may."""


def is_indexed(indices: Indices, node: cst.BaseExpression) -> bool:
    """Whether the expression is a tensor indexed by index expressions."""
    if not isinstance(node, cst.Subscript) or indices.has_index(node.value):
        return False
    return any(map(indices.has_index, index_values(node)))


def sliced(indices: Indices, node: cst.Subscript, limits: Limits) -> list[str]:
    """Return the contents of the brackets, one text per dimension. Raises `NotSlices`."""
    dims = sums(indices, node)
    rank = max(index.rank for index in dims)
    if any(map(indices.is_tile, index_values(node))):
        raise SeveralAxes("its rows are given by a tile")
    if dynamic(indices, node) is not None:
        raise SeveralAxes("an element of a tile is part of it: t.ap(pattern) expresses that")
    if _repeated(dims):
        raise SeveralAxes("an axis of the grid is in none of its dimensions")
    places = [[axis.place for _, axis in index.parts] for index in dims]
    if any(len(axes) > 1 for axes in places):
        raise SeveralAxes("two axes are added in one dimension: t.ap(pattern) expresses that")
    order = [axes[0] for axes in places if axes]
    if order != sorted(set(order)):
        raise SeveralAxes("its axes are not in dimension order: t.ap(pattern) expresses that")
    single = _single(places, rank)
    return [
        _slice(indices, index, limits)
        if index.parts
        else (_one(index.base) if n in single else index.base)
        for n, index in enumerate(dims)
    ]


def sliced_or_ap(
    indices: Indices,
    node: cst.Subscript,
    limits: Limits,
    order: Callable[[cst.Subscript], Sequence[int]],
) -> list[str] | str:
    """Return the contents of the brackets, or `.ap(…)` if slices cannot express them.

    The pattern's axes are in another order if `order` returns one. Raises `NotSlices`.
    """
    try:
        return sliced(indices, node, limits)
    except NotSlices:
        return pattern(indices, node, limits, order(node))


def _repeated(dims: Sequence[Index]) -> dict[int, str]:
    """Return the axes of grids that are in no dimension, with their counts."""
    varying = {axis.place for index in dims for _, axis in index.parts}
    counts = {place: count for index in dims for place, count in index.repeated.items()}
    return {place: n for place, n in counts.items() if place not in varying and n != "1"}


def _index(indices: Indices, value: cst.BaseExpression) -> Index:
    index = indices.of(value)
    if index is None:
        text = code(value)
        raise NotSlices(f"`{text}` is not a sum of numbers and axes, or its terms change")
    return index


def _single(places: Sequence[Sequence[int]], rank: int) -> set[int]:
    """Return the dimensions with a number that stand for an axis of one element in the result."""
    dims: set[int] = set()
    free: list[int] = []
    wanted = 0
    for dim, axes in enumerate(places):
        if not axes:
            free.append(dim)
            continue
        dims |= _last(free, axes[0] - wanted)
        free, wanted = [], axes[0] + 1
    return dims | _last(free, rank - wanted)


def _last(free: Sequence[int], count: int) -> set[int]:
    if count > len(free):
        raise SeveralAxes("the result has more dimensions than the index: reshape it")
    return set(free[len(free) - count :])


def _one(base: str) -> str:
    return f"{base}:{added(base, '1')}"


def _slice(indices: Indices, index: Index, limits: Limits) -> str:
    (step, axis), *_ = index.parts
    first, last = limits.get(axis, ("0", axis.count))
    base = added(index.base, times(step, axis.start))
    low = added(base, times(step, first))
    if step == "1":
        return span(indices, low, added(base, last), last if first == "0" else "")
    if step.startswith("-"):
        raise NotSlices("an axis runs backwards")
    end = added(base, added(times(step, less(last, "1")), "1"))
    return f"{low}:{end}:{step}"


def span(indices: Indices, low: str, high: str, count: str = "") -> str:
    """Return `low:high`, or `nl.ds(low, count)` if low is an expression and the count is known."""
    if not count or isinstance(cst.parse_expression(low), cst.Integer | cst.Name):
        return f"{low}:{high}"
    return f"{code(indices.sheet.nl('ds'))}({low}, {count})"


def limited(axis: Axis, limits: Limits) -> Axis:
    """Return the axis restricted to the elements that a mask selects."""
    if axis not in limits:
        return axis
    low, high = limits[axis]
    return replace(axis, start=added(axis.start, low), count=less(high, low))


def subscript(value: cst.BaseExpression, texts: Sequence[str]) -> cst.Subscript:
    """Return `value[texts]`."""
    indexed = cst.parse_expression(f"x[{', '.join(texts)}]")
    assert isinstance(indexed, cst.Subscript)
    return indexed.with_changes(value=value)


def viewed(indices: Indices, node: cst.Subscript, skip: int = 0) -> str:
    """Return the suffix of a tensor in which a dimension is made of several axes.

    It consists of slices, a shape in which each axis has a dimension, and their order. `skip`
    leading dimensions are those of a list. Raises `NotSlices`.
    """
    if dynamic(indices, node) is not None or _gathered(indices, node, {}):
        raise NotSlices("its rows are given by a tile")
    dims = sums(indices, node)[skip:]
    slices, shape, order = [], [], []
    for index in dims:
        axes = _nested(index)
        size = _product([axis.count for axis in axes])
        low = added(index.base, axes[0].start) if len(axes) == 1 else index.base
        slices.append(span(indices, low, added(low, size), size))
        shape += [axis.count for axis in axes]
        order += [axis.place for axis in axes]
    rank = max(index.rank for index in dims)
    if sorted(order) != list(range(rank)):
        raise NotSlices("a dimension of the result is not an axis of the index")
    text = f"[{', '.join(slices)}].reshape(({', '.join(shape)}))"
    if order == sorted(order):
        return text
    return f"{text}.permute({tuple(order.index(place) for place in range(rank))})"


def _nested(index: Index) -> list[Axis]:
    """Return the axes that cover a dimension without gaps: `n * i + j` with j below n."""
    if not index.parts:
        raise NotSlices("a dimension has a number beside several axes")
    axes: list[Axis] = []
    step = "1"
    for text, axis in sorted(index.parts, key=lambda part: part[0] != "1"):
        if text != step or (axis.start != "0" and len(index.parts) > 1):
            raise NotSlices("an axis skips elements: t.ap(pattern) expresses that")
        axes.insert(0, axis)
        step = axis.count if step == "1" else times(step, axis.count)
    return axes


def _product(counts: Sequence[str]) -> str:
    text = "1"
    for count in counts:
        text = times(text, count)
    return text


def counts(indices: Indices, node: cst.BaseExpression) -> str:
    """Return the shape of a tensor indexed by index expressions, "" if they do not tell it."""
    texts = sizes(indices, node) if is_indexed(indices, node) else []
    return tuple_of(texts) if texts else ""


def sizes(indices: Indices, node: cst.BaseExpression, name: str = "") -> list[str]:
    """Return the size of each dimension of an indexed tensor; none if the index does not tell them.

    `name` is that of the tensor, if it has one.
    """
    if not isinstance(node, cst.Subscript):
        return []
    if not is_indexed(indices, node):
        texts = [
            f"{name}.shape[{n}]" if name and is_whole(element) else _extent(indices, element)
            for n, element in enumerate(node.slice)
        ]
        return texts if all(texts) else []
    try:
        dims = sums(indices, node)
    except NotSlices:
        return []
    axes = {axis.place: axis.count for index in dims for _, axis in index.parts}
    return [axes.get(place, "1") for place in range(max(index.rank for index in dims))]


def _extent(indices: Indices, element: cst.SubscriptElement) -> str:
    """Return the number of elements that `a:b` and `nl.ds(a, n)` take; "" for everything else."""
    part = element.slice
    if isinstance(part, cst.Slice) and part.upper is not None and part.step is None:
        start = code(part.lower) if part.lower is not None else "0"
        end = part.upper
        if isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.Add):
            return code(end.right) if code(end.left) == start else ""
        return less(code(end), start) if start == "0" else ""
    value = part.value if isinstance(part, cst.Index) else None
    if not isinstance(value, cst.Call) or len(value.args) != 2:
        return ""
    return code(value.args[1].value) if indices.sheet.name_of(value.func) in PARTS else ""


PARTS = ("nki.language.ds", "nki.language.dslice")


# ---- access patterns -----------------------------------------------------------------------------


def pattern(
    indices: Indices, node: cst.Subscript, limits: Limits, order: Sequence[int] = ()
) -> str:
    """Return `.ap([[step, count], …], offset=…)` of a whole tensor, its axes in `order` if given.

    Raises `NotSlices`.
    """
    name = node.value
    if not isinstance(name, cst.Name) or not indices.is_whole(name):
        raise NotSlices("two axes are added in one dimension, or are in another order")
    scalar = dynamic(indices, node)
    gathered = _gathered(indices, node, limits) if scalar is None else ""
    if gathered:
        if order:
            raise NotSlices("its rows are given by a tile, in another order")
        return gathered
    dims = sums(indices, node)
    if scalar is not None:
        dims[scalar.dim] = scalar.rest
    rank = max(index.rank for index in dims)
    offset, pairs = _offset_and_pairs(name.value, dims, limits)
    all_pairs = _in_order(pairs, rank, dims)
    texts = ["[{}, {}]".format(*all_pairs[place]) for place in order or range(rank)]
    tail = f", offset={offset}" if offset != "0" else ""
    if scalar is not None:
        tail += f", scalar_offset={scalar.element}, indirect_dim={scalar.dim}"
    return f".ap([{', '.join(texts)}]{tail})"


def _offset_and_pairs(
    name: str, dims: Sequence[Index], limits: Limits
) -> tuple[str, dict[int, tuple[str, str]]]:
    """Return the offset of a pattern, and the step and count of each axis."""
    pairs: dict[int, tuple[str, str]] = {}
    offset = "0"
    for dim, index in enumerate(dims):
        step = _stride(name, dim, len(dims))
        offset = added(offset, times(index.base, step))
        for text, axis in index.parts:
            axis = limited(axis, limits)
            offset = added(offset, times(times(text, axis.start), step))
            before = pairs.get(axis.place, ("0", axis.count))[0]
            pairs[axis.place] = added(before, times(text, step)), axis.count
    return offset, pairs


def _gathered(indices: Indices, node: cst.Subscript, limits: Limits) -> str:
    """Rewrite `t[rows, i_f]` and `t[k, rows, i_f]` with a tile of rows; "" for everything else.

    Raises `NotSlices`.
    """
    parts = index_values(node)
    tiles = [n for n, expression in enumerate(parts) if indices.is_tile(expression)]
    if not tiles:
        return ""
    if len(parts) != len(node.slice) or tiles != [len(parts) - 2]:
        raise NotSlices("a tile selects elements of a dimension other than the last but one")
    *numbers, rows, last = parts
    column, before = indices.of(last), [indices.of(number) for number in numbers]
    plain = column is not None and [(step, axis.place) for step, axis in column.parts] == [("1", 1)]
    if column is None or not plain or not isinstance(node.value, cst.Name):
        raise NotSlices("a tile selects the rows, and the columns are not a slice")
    if any(index is None or index.parts for index in before):
        raise NotSlices("a tile selects rows of more than one plane")
    if not isinstance(rows, cst.Name | cst.Subscript):
        raise NotSlices("a tile without a name selects the rows")
    text = code(rows)
    if isinstance(rows, cst.Subscript):
        text = f"{code(rows.value)}[{', '.join(sliced(indices, rows, {}))}]"
    count = f"{text}.shape[0]"
    for low, high in (limits[axis] for axis in limits if axis.place == 0):
        text, count = f"{text}[{low}:{high}]", less(high, low)
    axis = limited(column.parts[0][1], limits)
    start = added(column.base, axis.start)
    offset = f", offset={start}" if start != "0" else ""
    step = f"{node.value.value}.shape[{len(numbers) + 1}]"
    plane = f"[{', '.join(map(code, numbers))}]" if numbers else ""
    pairs = f"[[{step}, {count}], [1, {axis.count}]]"
    return f"{plane}.ap({pairs}{offset}, vector_offset={text}, indirect_dim=0)"


def sums(indices: Indices, node: cst.Subscript) -> list[Index]:
    """Return the index of each dimension, with loop variables for axes that are loops.

    Raises `NotSlices`.
    """
    only = node.slice[0].slice
    if len(node.slice) == 1 and isinstance(only, cst.Index) and (grid := indices.grid(only.value)):
        return [_looped(indices, index) for index in grid]
    values = index_values(node)
    dims = [_index(indices, value) for value in values]
    if len(dims) != len(node.slice):
        raise NotSlices("slices and index expressions are mixed in one index")
    return [_looped(indices, index) for index in dims]


def _looped(indices: Indices, index: Index) -> Index:
    """Return the index without the axes for which the statement has loops."""
    if not indices.loops:
        return index
    base, parts = index.base, []
    for text, axis in index.parts:
        if axis.place in indices.loops:
            variable = indices.loops[axis.place][0]
            base = added(base, times(text, added(variable, axis.start)))
            continue
        before = sum(place < axis.place for place in indices.loops)
        grid = tuple(count for n, count in enumerate(axis.grid) if n not in indices.loops)
        rank = axis.rank - len(indices.loops)
        parts.append((text, replace(axis, rank=rank, place=axis.place - before, grid=grid)))
    return Index(base, tuple(parts))


def _in_order(
    pairs: Mapping[int, tuple[str, str]], rank: int, dims: Sequence[Index]
) -> list[tuple[str, str]]:
    """Return the pairs of all axes; those of a grid that are in no dimension are repeated."""
    repeated = _repeated(dims)
    return [
        pairs.get(place, ("0", repeated[place]) if place in repeated else ("1", "1"))
        for place in range(rank)
    ]


def _stride(name: str, dim: int, rank: int) -> str:
    text = "1"
    for later in range(dim + 1, rank):
        text = times(text, f"{name}.shape[{later}]")
    return text
