"""Indexing of Beta 1: conversion of a key of slices, ints, index expressions and tiles to a view.

Index expressions follow NumPy's advanced indexing: together they have one broadcast shape, at the
position of the first of them. Each of its dimensions has a constant step, so that the result is a
view. Bounds are not checked here, because a mask may exclude what is outside; they are checked when
the view is used. Source: "Tensor Indexing" of the programming model, SDK 2.20 to 2.26.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.text import plural
from nkic.language import views
from nkic.language.beta1.indices import NO_AXES, ONE, Dim, Index, as_index, merged
from nkic.language.hosted import brief, plain, surface, whole_number
from nkic.language.indexing import LEAVE_OUT, DynamicSlice
from nkic.language.views import ViewError, on_chip
from nkic.program.program import Dynamic, View

Axes = tuple[frozenset[int], ...]


class Outside(NamedTuple):
    """An index that exceeds dimension `axis` of the tensor, over the result's dimensions."""

    part: Index
    size: int
    axis: int


class Indexed(NamedTuple):
    """The view that an index takes.

    `axes` are the `arange` calls that run along each dimension. `outside` are the indices that
    exceed the tensor unless a mask excludes them.
    """

    view: View
    axes: Axes
    outside: tuple[Outside, ...] = ()


@surface()
class AtRunTime(NamedTuple):
    """An index that adds an element of a tile, read at run time, to a static part."""

    source: View
    static: Index

    def moved(self, other: Any) -> AtRunTime:
        """Return the index with `other` added to its static part."""
        return AtRunTime(self.source, self.static + other)


class _Dim(NamedTuple):
    """A dimension of the result: its size, its stride, and the `arange` calls along it."""

    size: int
    stride: int
    axes: frozenset[int] = NO_AXES


Part = slice | Index | AtRunTime | None  # None: a new dimension
_EXPRESSIONS = (Index, AtRunTime)  # a tuple: making a union at each test would take longer


def take(view: View, axes: Axes, key: Any, tile_of: Any) -> Indexed:
    """`t[key]`; `tile_of(value)` returns the view of a tile, or None if `value` is not one."""
    parts = _parts(view, key, tile_of)
    is_advanced = any(
        isinstance(part, AtRunTime) or (isinstance(part, Index) and bool(part.dims))
        for part in parts
    )
    result = (_advanced if is_advanced else _basic)(view, axes, parts)
    if parts[0] is None and on_chip(view):
        _check_leading(view, parts, result.view.shape)
    return result


def _check_leading(view: View, parts: Sequence[Part], shape: tuple[int, ...]) -> None:
    """Check that a tile with new dimensions before its partitions has a single partition."""
    partitions = shape[next(n for n, part in enumerate(parts) if part is not None)]
    if partitions > 1:
        raise KernelError(
            "partition-dimension",
            f"None puts a dimension of 1 before the {partitions} partitions, but the first "
            f"dimension of a tile is that of its partitions; shape is {view.shape}",
            help=LEAVE_OUT,
        )


def is_several(key: Any) -> bool:
    """Return whether a key is several indices; nl.ds(…), although a tuple, is one."""
    return isinstance(key, tuple) and not isinstance(key, DynamicSlice)


def _parts(view: View, key: Any, tile_of: Any) -> list[Part]:
    """Return one part per dimension of the view, and None for each new dimension."""
    items = list(key) if is_several(key) else [key]
    rank = len(view.shape)
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > rank:
        raise KernelError(
            "too-many-indices",
            f"{plural(used, 'index', 'indices')} for {plural(rank, 'dimension')}; "
            f"shape is {view.shape}",
        )
    missing = [slice(None)] * (rank - used)
    at = next((n for n, item in enumerate(items) if item is Ellipsis), len(items))
    items = [*items[:at], *missing, *items[at + 1 :]]
    parts: list[Part] = []
    axis = 0
    for item in items:
        parts.append(None if item is None else _part(view, axis, item, tile_of))
        axis += item is not None
    return parts


def _part(view: View, axis: int, item: Any, tile_of: Any) -> Part:
    size = view.shape[axis]
    if isinstance(item, _EXPRESSIONS):
        return item
    if isinstance(item, slice):
        start, stop = _edge(item.start, size, 0), _edge(item.stop, size, size)
        return slice(start, stop, _step(item.step, axis))
    if isinstance(item, DynamicSlice):
        return _ds(item, tile_of)
    source = tile_of(item)
    if source is not None:
        dims = tuple(Dim(n, 0) for n in source.shape)
        return AtRunTime(source, Index(0, dims if prod(source.shape) > 1 else ()))
    number = plain(item)
    if isinstance(number, int) and not isinstance(number, bool):
        return Index(int(number) + (size if number < 0 else 0), ())
    raise KernelError(
        "bad-index",
        f"a tensor cannot be indexed with {brief(item)}; shape is {view.shape}",
        help="use slices, ints and the indices that nl.arange and nl.mgrid return",
    )


def _ds(item: DynamicSlice, tile_of: Any) -> Part:
    count = whole_number(item.size, "the size of nl.ds")
    source, steps = tile_of(item.start), Index(0, (Dim(count, 1),))
    if source is not None:
        return AtRunTime(source, steps)
    if isinstance(item.start, AtRunTime):
        return item.start.moved(steps)
    start = int(as_index(item.start) or 0) if not isinstance(item.start, int) else item.start
    return slice(int(start), int(start) + count, 1)


def _edge(value: Any, size: int, default: int) -> int:
    if value is None:
        return default
    index = as_index(value)
    if index is None:
        text = f"the bounds of a slice must be ints, not {brief(value)}"
        help = "use `//` for whole numbers" if isinstance(value, float) else ""
        raise KernelError("bad-index", text, help=help)
    number = int(index)
    return number + size if number < 0 else number


def _step(value: Any, axis: int) -> int:
    step = _edge(value, 0, 1)
    if step < 1:
        raise KernelError(
            "bad-index",
            f"the step of a slice of dimension {axis} must be at least 1, not {step}",
            help="count down with an index: `last - nl.arange(n)`",
        )
    return step


# ---- slices and ints -----------------------------------------------------------------------------


def _basic(view: View, axes: Axes, parts: Sequence[Part]) -> Indexed:
    dims: list[_Dim] = []
    beyond: list[tuple[int, Index, int]] = []
    offset, axis = view.offset, 0
    for part in parts:
        if part is None:
            dims.append(_Dim(1, 0))
            continue
        stride = view.strides[axis]
        _note_outside(beyond, view, axis, part, len(dims))
        if isinstance(part, slice):
            start, dim = _sliced_dim(view, axes, axis, part)
            offset += start * stride
            dims.append(dim)
        elif isinstance(part, Index):
            offset += part.start * stride
            if axis == 0 and on_chip(view):  # indexing keeps the partition dimension
                dims.append(_Dim(1, stride))
        axis += 1
    if not dims or (len(dims) < 2 and on_chip(view)):  # a tile has at least two dimensions
        dims.append(_Dim(1, 1))
    return _indexed(view, dims, offset, view.dynamic, _extend(view, beyond, len(dims), 0))


def _indexed(
    view: View,
    dims: Sequence[_Dim],
    offset: int,
    dynamic: Dynamic | None,
    outside: tuple[Outside, ...],
) -> Indexed:
    shape, strides = tuple([dim.size for dim in dims]), tuple([dim.stride for dim in dims])
    result = View(view.tensor, shape, strides, offset, view.dtype, dynamic)
    return Indexed(result, tuple([dim.axes for dim in dims]), outside)


def _note_outside(
    beyond: list[tuple[int, Index, int]], view: View, axis: int, part: Part, first_dim: int
) -> None:
    """Append a part that exceeds its dimension; `first_dim` is its first one in the result."""
    size = view.shape[axis]
    if isinstance(part, slice):
        start, count, step = _sliced(view, axis, part)
        part = Index(start, (Dim(count, step if count > 1 else 0),))
    if isinstance(part, Index) and _is_outside(part, size):
        beyond.append((first_dim, part, axis))


def _is_outside(index: Index, size: int) -> bool:
    low, high = index.bounds
    return low < 0 or high >= size


def _extend(
    view: View, beyond: list[tuple[int, Index, int]], rank: int, shift: int
) -> tuple[Outside, ...]:
    """Extend the indices to all `rank` dimensions of the result."""
    extended = []
    for first_dim, index, axis in beyond:
        before = (ONE,) * (first_dim + shift)
        dims = before + index.dims + (ONE,) * (rank - len(before) - len(index.dims))
        extended.append(Outside(Index(index.start, dims[:rank]), view.shape[axis], axis))
    return tuple(extended)


def _sliced_dim(view: View, axes: Axes, axis: int, part: slice) -> tuple[int, _Dim]:
    """Return the start of a slice, and the dimension that it leaves."""
    start, size, step = _sliced(view, axis, part)
    is_whole = size == view.shape[axis]
    return start, _Dim(size, view.strides[axis] * step, axes[axis] if is_whole else NO_AXES)


def _sliced(view: View, axis: int, part: slice) -> tuple[int, int, int]:
    start, stop, step = part.start, part.stop, part.step
    if start >= stop:
        raise KernelError(
            "empty-slice",
            f"slice {start}:{stop}:{step} of dimension {axis} has no elements; shape is "
            f"{view.shape}",
            help="skip the instruction if there is nothing to do",
        )
    return start, (stop - start + step - 1) // step, step


# ---- index expressions ---------------------------------------------------------------------------


def _advanced(view: View, axes: Axes, parts: Sequence[Part]) -> Indexed:
    numbered = _with_axes(parts)
    at = next(n for n, part in enumerate(parts) if isinstance(part, _EXPRESSIONS))
    common = _common_dims(parts)
    before = _slices(view, axes, numbered[:at], 0)
    joint = _expressions(view, numbered, common, at)
    after = _slices(view, axes, numbered[at:], at + len(common))
    dims = [*before.dims, *joint.dims, *after.dims]
    dynamic, length = joint.dynamic, len(dims)
    if on_chip(view):
        _check_partition(view, parts[0], len(common), at, dims)
    elif dynamic is not None and dynamic is not view.dynamic and dynamic.kind == "vector":
        dims[at] = dims[at]._replace(stride=dynamic.stride)  # of the rows, wherever they are
    offset = view.offset + before.offset + joint.offset + after.offset
    beyond = [*before.beyond, *joint.beyond, *after.beyond]
    outside = _extend(view, beyond, len(dims), int(len(dims) > length))
    return _indexed(view, dims, offset, dynamic, outside)


class _Section(NamedTuple):
    """Adjacent dimensions of the result, with the offset that their indices add.

    `beyond` are the indices that exceed the tensor: first dimension in the result, index, axis.
    """

    dims: list[_Dim]
    offset: int
    beyond: list[tuple[int, Index, int]]
    dynamic: Dynamic | None = None


def _with_axes(parts: Sequence[Part]) -> list[tuple[int, Part]]:
    """Return the parts with their axes of the view; a new dimension has that of the next part."""
    axes = accumulate((int(part is not None) for part in parts), initial=0)
    return list(zip(axes, parts, strict=False))


def _slices(
    view: View, axes: Axes, numbered: Sequence[tuple[int, Part]], first_dim: int
) -> _Section:
    """Return the dimensions of slices and new dimensions, the first of which is `first_dim`."""
    dims: list[_Dim] = []
    beyond: list[tuple[int, Index, int]] = []
    offset = 0
    for axis, part in numbered:
        if part is None:
            dims.append(_Dim(1, 0))
        elif isinstance(part, slice):
            _note_outside(beyond, view, axis, part, first_dim + len(dims))
            start, dim = _sliced_dim(view, axes, axis, part)
            offset += start * view.strides[axis]
            dims.append(dim)
    return _Section(dims, offset, beyond)


def _expressions(
    view: View, numbered: Sequence[tuple[int, Part]], common: tuple[Dim, ...], first_dim: int
) -> _Section:
    """Return the common dimensions of all index expressions, the first of which is `first_dim`."""
    steps, offset, dynamic = [0] * len(common), 0, view.dynamic
    beyond: list[tuple[int, Index, int]] = []
    for axis, part in numbered:
        if isinstance(part, Index):
            index = part
            if _is_outside(index, view.shape[axis]):
                beyond.append((first_dim, merged(index, Index(0, common))[0], axis))
        elif isinstance(part, AtRunTime):
            dynamic = _dynamic(view, axis, part, dynamic)
            index = part.static
        else:
            continue
        stride = view.strides[axis]
        offset += index.start * stride
        moves = _aligned_steps(index, len(common))
        steps = [step + move * stride for step, move in zip(steps, moves, strict=True)]
    dims = [_Dim(dim.size, step, dim.axes) for dim, step in zip(common, steps, strict=True)]
    return _Section(dims, offset, beyond, dynamic)


def _common_dims(parts: Sequence[Part]) -> tuple[Dim, ...]:
    """Return the common dimensions of all index expressions."""
    common = Index(0, ())
    for part in parts:
        if isinstance(part, _EXPRESSIONS):
            index = part.static if isinstance(part, AtRunTime) else part
            common = merged(common, index)[0]
    return common.dims


def _aligned_steps(index: Index, rank: int) -> list[int]:
    """Return the steps of an expression along the common dimensions."""
    steps = [dim.step if dim.size > 1 else 0 for dim in index.dims]
    return [0] * (rank - len(steps)) + steps


def _check_partition(view: View, first: Part, rank: int, at: int, dims: list[_Dim]) -> None:
    """Check that dimension 0 of the result walks partitions, and that no other one does.

    The `rank` dimensions of the index expressions begin at dimension `at`.
    """
    pitch = view.strides[0]
    if isinstance(first, Index) and not first.dims:  # a single partition, which remains a dimension
        if len(dims) > 1 and not at and dims[0].size > 1 and not dims[0].stride:
            dims[0] = dims[0]._replace(size=1)  # the same partition repeated: keep it once
        if not dims or dims[0].size != 1 or at:
            dims.insert(0, _Dim(1, pitch))
        dims[0] = dims[0]._replace(stride=pitch)
        return
    good = at > 0
    if isinstance(first, Index):
        size, stride, _ = dims[0]
        moves = _aligned_steps(first, rank)
        good = at == 0 and not any(moves[1:])
        good = good and (size == 1 or (moves[0] != 0 and stride == moves[0] * pitch))
        dims[0] = dims[0]._replace(stride=pitch if size == 1 else stride)
    if not good and isinstance(first, Index) and dims[0].size > 1 and not dims[0].stride:
        raise KernelError(
            "partition-dimension",
            f"the index of the partitions selects one partition {dims[0].size} times; a tile in "
            f"{view.tensor.buffer.value} is read in its own partitions, each once",
            help="repeat it in a new tile, `nl.broadcast_to(row, shape=(128, n))`, or load the row "
            "into all partitions, `nl.load(tensor[0:1, :].broadcast_to((128, n)))`",
        )
    if not good:
        raise KernelError(
            "partition-dimension",
            "the first dimension of the result must be the partition dimension, and nothing else; "
            f"shape is {view.shape}",
            help="write i_p = nl.arange(n)[:, None] for partitions, i_f = nl.arange(m)[None, :] "
            "for columns",
        )


def _dynamic(view: View, axis: int, part: AtRunTime, dynamic: Dynamic | None) -> Dynamic:
    if dynamic is not None:
        raise KernelError(
            "indirect-view", "a tensor can be indexed with one tile only", help="copy it first"
        )
    size, stride = view.shape[axis], view.strides[axis]
    source = part.source
    if all(n == 1 for n in source.shape):
        flat = source._replace(shape=(1, 1), strides=(source.strides[0], 1))
        return Dynamic("scalar", flat, stride, size, axis)
    if on_chip(view):
        raise KernelError(
            "indirect-view",
            f"rows can be gathered from HBM only; this tensor is in {view.tensor.buffer.value}",
            help="index a tile in SBUF with a single run-time element",
        )
    flat = source._replace(shape=(source.shape[0], 1), strides=(source.strides[0], 1))
    return Dynamic("vector", flat, stride, size, 0)


# ---- parts of views ------------------------------------------------------------------------------


def part_of(view: View, starts: Sequence[int], sizes: Sequence[int]) -> View:
    offset = view.offset + sum(
        start * stride for start, stride in zip(starts, view.strides, strict=True)
    )
    dynamic = view.dynamic
    if dynamic is not None and dynamic.kind == "vector" and isinstance(dynamic.source, View):
        source = dynamic.source
        offset -= starts[0] * view.strides[0]
        rows = part_of(source, (starts[0], 0), (sizes[0], source.shape[1]))
        dynamic = dynamic._replace(source=rows)
    return view._replace(shape=tuple(sizes), offset=offset, dynamic=dynamic)


def permuted(view: View, order: Sequence[int]) -> View:
    """Permute the dimensions of a view; those that `order` omits are dropped."""
    shape, strides = (tuple(part[n] for n in order) for part in (view.shape, view.strides))
    return view._replace(shape=shape, strides=strides)


def broadcast(view: View, shape: Sequence[int]) -> View | None:
    """Broadcast a view to a shape; None if it does not fit. Partitions are not repeated."""
    if view.shape == tuple(shape):
        return view
    missing = len(shape) - len(view.shape)
    if missing < 0:
        narrow = squeezed(view, len(shape))
        return broadcast(narrow, shape) if narrow is not None else None
    if missing and on_chip(view):
        view = view._replace(
            shape=(view.shape[0], *(1,) * missing, *view.shape[1:]),
            strides=(view.strides[0], *(0,) * missing, *view.strides[1:]),
        )
    elif missing:
        view = view._replace(
            shape=(1,) * missing + view.shape, strides=(0,) * missing + view.strides
        )
    strides = []
    for axis, (size, target) in enumerate(zip(view.shape, shape, strict=True)):
        if size == target:
            strides.append(view.strides[axis])
        elif size == 1 and not (axis == 0 and on_chip(view)):
            strides.append(0)
        else:
            return None
    return view._replace(shape=tuple(shape), strides=tuple(strides))


def fitted(view: View, shape: Sequence[int]) -> View | None:
    """Broadcast a view to a shape, or reshape it; None if neither is possible."""
    repeated = broadcast(view, shape)
    if repeated is not None or prod(view.shape) != prod(shape):
        return repeated
    if on_chip(view) and view.shape[0] != shape[0]:
        return None
    try:
        return views.reshape(view, tuple(shape))
    except ViewError:
        return None


def squeezed(view: View, rank: int) -> View | None:
    """Drop dimensions of size 1 down to a rank; None if there are too few."""
    dims = list(zip(view.shape, view.strides, strict=True))
    for at in range(len(dims) - 1, int(on_chip(view)) - 1, -1):
        if len(dims) > rank and dims[at][0] == 1:
            del dims[at]
    if len(dims) != rank:
        return None
    shape, strides = zip(*dims, strict=True)
    return view._replace(shape=tuple(shape), strides=tuple(strides))
