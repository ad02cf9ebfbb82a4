"""Index expressions as slices: `t[i_p, k * 512 + i_f]` → `t[0:128, k * 512:…]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Any, NamedTuple, cast

import libcst as cst

from nkic.language.beta1.indices import ONE, Index
from nkic.migrate.beta1.indices import (
    Indices,
    Number,
    Sum,
    code,
    fixed,
    index_values,
    is_whole,
    moving,
    number,
    tuple_of,
)
from nkic.migrate.sheet import walk

# ------------------------------------------------------------------------------------------------
# Index expressions with elements of tiles, known at run time: `t[i_p, start[0, k] + i_f]`.
# Later versions express them as the `scalar_offset` of an access pattern.


class Dynamic(NamedTuple):
    """A dimension whose index is the element of a tile, given as a tile, plus `rest`."""

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
    slices = [_one(number(item)) for item in index_values(tile)]
    return Dynamic(dim, f"{code(tile.value)}[{', '.join(slices)}]", index)


def _is_element(indices: Indices, node: cst.Subscript) -> bool:
    name = node.value
    if not isinstance(name, cst.Name) or not indices.is_whole(name) or not indices.is_tile(name):
        return False
    values = (value for _, value in indices.definitions(name))
    ranks = {len(tensor.shape) for value in values for tensor in indices.sheet.tensors(value)}
    numbers = [value for value in index_values(node) if not indices.has_index(value)]
    return len(numbers) == len(node.slice) and ranks == {len(node.slice)}


def _without(indices: Indices, node: cst.BaseExpression, tile: cst.Subscript) -> Index | None:
    """Return what is added to the element of a tile; None if it is not a plain sum."""
    if node is tile:
        return fixed(0)
    if not any(inner is tile for inner in walk(node)):
        return indices.of(node)
    if not isinstance(node, cst.BinaryOperation):
        return None
    left, right = (_without(indices, part, tile) for part in (node.left, node.right))
    if left is None or right is None:
        return None
    if isinstance(node.operator, cst.Add):
        return cast(Index, left + right)
    is_left = any(inner is tile for inner in walk(node.left))
    return (
        cast(Index, left - right) if is_left and isinstance(node.operator, cst.Subtract) else None
    )


# --------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """A dimension of an index: its place among `rank` ones, and its number of elements."""

    rank: int
    place: int
    size: Number


Limits = Mapping[Axis, tuple[Number, Number]]
"""For axes of a mask: the first selected element, and the one after the last."""


class NotSlices(Exception):
    """An index that slices cannot express; the text explains why."""


class SeveralAxes(NotSlices):
    """An index that slices cannot express, but a view may."""


def is_indexed(indices: Indices, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Subscript) or indices.has_index(node.value):
        return False
    return any(map(indices.has_index, index_values(node)))


def sliced(indices: Indices, node: cst.Subscript, limits: Limits) -> list[str]:
    """Return the contents of the brackets, one text per dimension. Raises `NotSlices`."""
    dims = sums(indices, node)
    if any(map(indices.is_tile, index_values(node))):
        raise SeveralAxes("its rows are given by a tile")
    if dynamic(indices, node) is not None:
        raise SeveralAxes("an element of a tile is part of it: t.ap(pattern) expresses that")
    if _repeated(dims):
        raise SeveralAxes("an axis of the grid is in none of its dimensions")
    places = [[place for place, _ in moving(index)] for index in dims]
    if any(len(axes) > 1 for axes in places):
        raise SeveralAxes("two axes are added in one dimension: t.ap(pattern) expresses that")
    order = [axes[0] for axes in places if axes]
    if order != sorted(set(order)):
        raise SeveralAxes("its axes are not in dimension order: t.ap(pattern) expresses that")
    single = _single(places, dims[0].ndim)
    return [
        _slice(indices, index, limits)
        if moving(index)
        else (_one(index.start) if n in single else str(index.start))
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


def _repeated(dims: Sequence[Index]) -> dict[int, Number]:
    """Return the axes of grids that are in no dimension, with their counts."""
    varying = {place for index in dims for place, _ in moving(index)}
    every = ((place, dim.size) for index in dims for place, dim in enumerate(index.dims))
    return {place: size for place, size in every if place not in varying and size != 1}


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


def _one(start: Number) -> str:
    return f"{start}:{start + 1}"


def _slice(indices: Indices, index: Index, limits: Limits) -> str:
    (place, (count, step, _)), *_ = moving(index)
    first, last = limits.get(Axis(index.ndim, place, count), (0, count))
    low = index.start + step * first
    if step == 1:
        return span(indices, low, index.start + last, last if first == 0 else None)
    if str(step).startswith("-"):
        raise NotSlices("an axis runs backwards")
    return f"{low}:{index.start + step * (last - 1) + 1}:{step}"


def span(indices: Indices, low: Number, high: Number, count: Number | None) -> str:
    if count is None or isinstance(low, int) or str(low).isidentifier():
        return f"{low}:{high}"
    return f"{code(indices.sheet.nl('ds'))}({low}, {count})"


def subscript(value: cst.BaseExpression, texts: Sequence[str]) -> cst.Subscript:
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
    slices: list[str] = []
    shape: list[Number] = []
    order: list[int] = []
    for index in dims:
        axes = _nested(index)
        counts = [index.dims[place].size for place in axes]
        size: Number = reduce(mul, counts)
        slices.append(span(indices, index.start, index.start + size, size))
        shape += counts
        order += axes
    if sorted(order) != list(range(dims[0].ndim)):
        raise NotSlices("a dimension of the result is not an axis of the index")
    text = f"[{', '.join(slices)}].reshape({tuple_of(shape)})"
    if order == sorted(order):
        return text
    return f"{text}.permute({tuple(map(order.index, sorted(order)))})"


def _nested(index: Index) -> list[int]:
    """Return the axes that cover a dimension without gaps: `n * i + j` with j below n."""
    if not moving(index):
        raise NotSlices("a dimension has a number beside several axes")
    axes: list[int] = []
    wanted: Number = 1
    for place, (count, step, _) in sorted(moving(index), key=lambda axis: axis[1].step != 1):
        if step != wanted:
            raise NotSlices("an axis skips elements: t.ap(pattern) expresses that")
        axes.insert(0, place)
        wanted = wanted * count
    return axes


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
    moves = {place: str(dim.size) for index in dims for place, dim in moving(index)}
    return [moves.get(place, "1") for place in range(dims[0].ndim)]


def _extent(indices: Indices, element: cst.SubscriptElement) -> str:
    """Return the number of elements that `a:b` and `nl.ds(a, n)` take; "" for everything else."""
    match element.slice:
        case cst.Slice(lower, cst.BaseExpression() as upper, None):
            count = str(number(upper) - (number(lower) if lower is not None else 0))
            return count if lower is None or "-" not in count else ""
        case cst.Index(cst.Call(function, (_, size))) if indices.sheet.name_of(function) in PARTS:
            return code(size.value)
    return ""


PARTS = ("nki.language.ds", "nki.language.dslice")


# ---- access patterns -----------------------------------------------------------------------------


def pattern(
    indices: Indices, node: cst.Subscript, limits: Limits, order: Sequence[int] = ()
) -> str:
    """Return `.ap([[step, count], …], offset=…)`, its axes in `order`. Raises `NotSlices`."""
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
    tail = ""
    if scalar is not None:
        dims[scalar.dim] = scalar.rest
        tail = f", scalar_offset={scalar.element}, indirect_dim={scalar.dim}"
        dims = _alike(dims)
    offset, pairs = _offset_and_pairs(name.value, dims, limits)
    texts = ["[{}, {}]".format(*pairs[place]) for place in order or range(len(pairs))]
    tail = f", offset={offset}{tail}" if offset != 0 else tail
    return f".ap([{', '.join(texts)}]{tail})"


def _offset_and_pairs(
    name: str, dims: Sequence[Index], limits: Limits
) -> tuple[Number, list[tuple[Number, Number]]]:
    """Return the offset of a pattern, and the step and count of each axis."""
    repeated = _repeated(dims)
    pairs: list[tuple[Number, Number]] = [
        (0, repeated[place]) if place in repeated else (1, 1) for place in range(dims[0].ndim)
    ]
    offset: Number = 0
    seen: set[int] = set()
    for dim, index in enumerate(dims):
        later = [Sum(((1, f"{name}.shape[{n}]"),)) for n in range(dim + 1, len(dims))]
        stride: Number = reduce(mul, later, 1)
        offset = offset + index.start * stride
        for place, (count, step, _) in moving(index):
            low, high = limits.get(Axis(index.ndim, place, count), (0, count))
            offset = offset + step * low * stride
            before = pairs[place][0] if place in seen else 0
            pairs[place] = before + step * stride, high - low
            seen.add(place)
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
    axes = moving(column) if column is not None else []
    plain = [(place, dim.step) for place, dim in axes] == [(1, 1)]
    if column is None or not plain or not isinstance(node.value, cst.Name):
        raise NotSlices("a tile selects the rows, and the columns are not a slice")
    if any(index is None or moving(index) for index in before):
        raise NotSlices("a tile selects rows of more than one plane")
    if not isinstance(rows, cst.Name | cst.Subscript):
        raise NotSlices("a tile without a name selects the rows")
    text = code(rows)
    if isinstance(rows, cst.Subscript):
        text = f"{code(rows.value)}[{', '.join(sliced(indices, rows, {}))}]"
    count: object = f"{text}.shape[0]"
    for low, high in (limits[axis] for axis in limits if axis.place == 0):
        text, count = f"{text}[{low}:{high}]", high - low
    width = axes[0][1].size
    low, high = limits.get(Axis(column.ndim, 1, width), (0, width))
    start = column.start + low
    offset = f", offset={start}" if start != 0 else ""
    step = f"{node.value.value}.shape[{len(numbers) + 1}]"
    plane = f"[{', '.join(map(code, numbers))}]" if numbers else ""
    pairs = f"[[{step}, {count}], [1, {high - low}]]"
    return f"{plane}.ap({pairs}{offset}, vector_offset={text}, indirect_dim=0)"


def sums(indices: Indices, node: cst.Subscript) -> list[Index]:
    """Return the index of each dimension, with loop variables for axes that are loops.

    All have the same number of dimensions. Raises `NotSlices`.
    """
    values = index_values(node)
    grid = indices.value(values[0]) if len(values) == len(node.slice) == 1 else None
    if isinstance(grid, tuple):
        return _alike([_looped(indices, index) for index in grid])
    dims = []
    for value in values:
        index = indices.of(value)
        if index is None:
            text = code(value)
            raise NotSlices(f"`{text}` is not a sum of numbers and axes, or its terms change")
        dims.append(_looped(indices, index))
    if len(dims) != len(node.slice):
        raise NotSlices("slices and index expressions are mixed in one index")
    return _alike(dims)


def _alike(dims: Sequence[Index]) -> list[Index]:
    """Return the expressions with as many dimensions as the longest."""
    rank = max(index.ndim for index in dims)
    return [Index(index.start, (ONE,) * (rank - index.ndim) + index.dims) for index in dims]


def _looped(indices: Indices, index: Index) -> Index:
    """Return the index without the axes for which the statement has loops."""
    start: Any = index.start
    for place, dim in moving(index):
        if place in indices.loops:
            start = start + dim.step * number(indices.loops[place][0])
    return Index(start, tuple(d for n, d in enumerate(index.dims) if n not in indices.loops))
