"""Indexing: `t[key]`, `slice` and `select`, with static and run-time indices.

Unlike Python, a slice past the end is an error and is not truncated: NkiTensor.slice documents 0 <=
start < end <= size, and the hardware would read past the end. An empty view of a tensor in HBM may
exist, for a core without rows to process; no instruction accepts it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nkic.base.text import plural
from nkic.ir.tensors import Dynamic, View
from nkic.language.hosted import plain
from nkic.language.registers import DeviceInteger
from nkic.language.tensors.views import (
    NOTHING_TO_DO,
    Shape,
    ViewError,
    check_dim,
    check_some,
    interned,
    keeps_first,
    min_rank_of,
    on_chip,
    replaced,
)
from nkic.language.texts import brief
from nkic.machine.facts import Register


class DynamicSlice(NamedTuple):
    """`nl.ds(start, size)`: `size` elements from `start`, an int or a register."""

    start: Any
    size: int

    def __repr__(self) -> str:
        return f"nl.ds({self.start}, {self.size})"


# Where the closed world prints it; in the class it would be a field.
DynamicSlice._shown_as = "nl.ds"  # type: ignore[attr-defined]


def index(view: View, key: Any) -> View:
    """`t[key]`: ints, slices with steps, `...`, `nl.ds`, negative indices, registers."""
    if type(key) is not tuple:
        key = (key,)
    return (_box(view, key) if view.dynamic is None else None) or _index(view, key)


def _box(view: View, key: tuple[Any, ...]) -> View | None:
    """Return the common index: `a:b` or `nl.ds(a, n)` in every dimension, valid in every memory.

    It has the strides of the whole view. Other indices return None. This is a hot path of every
    kernel, hence the plain loop.
    """
    tensor, shape, strides, offset, dtype, _ = view
    sizes: list[int] = []
    for item, size, stride in zip(key, shape, strides):  # noqa: B905  (checked below)
        if type(item) is DynamicSlice:
            first, count = item
            if not type(first) is type(count) is int or not 0 <= first < first + count <= size:
                return None
        elif type(item) is slice and item.step is None:
            first, last = item.start, item.stop
            first = 0 if first is None else first
            last = size if last is None else last
            if not type(first) is type(last) is int or not 0 <= first < last <= size:
                return None
            count = last - first
        else:
            return None
        offset += first * stride
        sizes.append(count)
    if len(sizes) < len(key):
        return None
    sizes += shape[len(sizes) :]
    return tuple.__new__(View, (tensor, interned(tuple(sizes)), strides, offset, dtype, None))


def _index(view: View, key: tuple[Any, ...]) -> View:
    tensor, shape, strides, offset, dtype, dynamic = view
    sizes: list[int] = []
    steps: list[int] = []
    axis = 0
    for item in key:
        if item is Ellipsis:
            end = axis + _ellipsis(view, key)
            sizes += shape[axis:end]
            steps += strides[axis:end]
            axis = end
            continue
        if axis >= len(shape):
            raise _too_many(view, key)
        stride = strides[axis]
        if type(item) is slice:
            start, stop, step = _bounds(view, axis, item)
            offset += start * stride
            sizes.append((stop - start + step - 1) // step)
            steps.append(stride * step)
        else:
            size, start, dynamic = _single(view, axis, item, dynamic)
            offset += start * stride
            if size is not None:
                sizes.append(size)
                steps.append(stride)
        axis += 1
    sizes += shape[axis:]
    steps += strides[axis:]
    if len(sizes) < 2:
        missing = min_rank_of(view) - len(sizes)
        sizes += [1] * missing
        steps += [1] * missing
    return tuple.__new__(
        View, (tensor, interned(tuple(sizes)), interned(tuple(steps)), offset, dtype, dynamic)
    )


def slice_dim(view: View, dim: int, start: int, stop: int, step: int = 1) -> View:
    """Slice dimension `dim` from `start` to below `stop`; none may be negative."""
    check_dim(view, dim)
    first, last, step = (_as_int(view, dim, n) for n in (start, stop, step))
    first, last, step = _checked(view, dim, first, last, step)
    return index(view, (slice(None),) * dim + (slice(first, last, step),))


def select(view: View, dim: int, item: Any) -> View:
    """Select one element of dimension `dim`, which is dropped if `index` would drop it."""
    check_dim(view, dim)
    return index(view, (slice(None),) * dim + (item,))


def select_at_run_time(view: View, dim: int, source: View | Register) -> View:
    """Select the element of dimension `dim` that `source` holds at run time."""
    check_dim(view, dim)
    dynamic = at_run_time(view, dim, source)
    return select(view, dim, 0)._replace(dynamic=dynamic)


def at_run_time(view: View, axis: int, source: View | Register) -> Dynamic:
    """Return the offset of a run-time index along `axis`."""
    if view.dynamic is not None:
        raise ViewError(
            "indirect-view",
            "a view can have at most one run-time index",
            "copy the view to a tensor before indexing it again; `is_indirect()` tells which are",
            view.shape,
        )
    if axis == 0 and on_chip(view):
        raise ViewError(
            "partition-dimension",
            "the partition of an on-chip tensor cannot be chosen at run time; "
            f"shape is {view.shape}",
            "index a free dimension, or go through HBM with dma_copy",
            view.shape,
        )
    check_some(view, axis)
    return Dynamic("scalar", source, view.strides[axis], view.shape[axis], axis)


# Slices


def _bounds(view: View, axis: int, item: slice) -> tuple[int, int, int]:
    """Return start, stop and step of a slice, checked against the dimension."""
    size = view.shape[axis]
    start, stop, step = item.start, item.stop, item.step
    start = 0 if start is None else start
    stop = size if stop is None else stop
    step = 1 if step is None else step
    if not (type(start) is type(stop) is type(step) is int):
        start, stop, step = (_as_int(view, axis, n) for n in (start, stop, step))
    if start < 0:
        start += size
    if stop < 0:
        stop += size
    if step == 1 and 0 <= start < stop <= size and (axis or view.dynamic is None):
        return start, stop, 1
    if start < 0 or stop < 0:
        raise _before_the_first(view, axis, item)
    return _checked(view, axis, start, stop, step)


def _before_the_first(view: View, axis: int, item: slice) -> ViewError:
    """Return the error for a negative index below the first element."""
    size, shape = view.shape[axis], view.shape
    ends = ["" if end is None else str(end) for end in (item.start, item.stop)]
    return ViewError(
        "index-out-of-bounds",
        f"slice {':'.join(ends)} reaches outside dimension {axis} of size {size}; shape is {shape}",
        f"a negative index counts from the end; the lowest one here is -{size}",
        shape,
    )


def _checked(view: View, axis: int, start: int, stop: int, step: int) -> tuple[int, int, int]:
    """Return the bounds unchanged. Raises `ViewError` if they are invalid."""
    if step < 1:
        raise _bad_step(view, step)
    size, shape = view.shape[axis], view.shape
    wanted = replaced(shape, axis, max(1, (stop - start + step - 1) // step))
    if start < 0 or stop > size:
        raise _out_of_bounds(view, axis, start, stop, wanted)
    if stop < start or (stop == start and on_chip(view)):
        raise ViewError(
            "empty-slice",
            f"slice {start}:{stop} of dimension {axis} is empty; shape is {shape}",
            NOTHING_TO_DO,
            wanted,
        )
    if axis == 0 and step > 1 and on_chip(view):
        raise ViewError(
            "partition-dimension",
            f"a step of {step} would skip partitions, which must be adjacent; shape is {shape}",
            "step through a free dimension instead, or copy partition by partition",
            wanted,
        )
    _check_gathered(view, axis, (start, stop, step) == (0, size, 1))
    return start, stop, step


def _bad_step(view: View, step: int) -> ViewError:
    """Return the error for a step below 1."""
    return ViewError(
        "bad-index",
        f"a slice of a tensor needs a step of at least 1, not {step}",
        "access patterns cannot run backwards; reverse the loop that uses the slice"
        if step
        else "write a step of 1 for every element; t.broadcast(dim, size) repeats one",
        view.shape,
    )


def _out_of_bounds(view: View, axis: int, start: int, stop: int, wanted: Shape) -> ViewError:
    """Return the error for a slice that reaches outside its dimension."""
    size = view.shape[axis]
    return ViewError(
        "index-out-of-bounds",
        f"slice {start}:{stop} reaches outside dimension {axis} of size {size}; "
        f"shape is {view.shape}",
        "start at 0 or above; only the bounds of `t[a:b]` may count from the end"
        if start < 0
        else f"tensor slices are not truncated: write `min({stop}, {size})`, or choose a tile "
        f"size that divides {size}",
        wanted,
    )


def _ellipsis(view: View, key: tuple[Any, ...]) -> int:
    """Return the number of dimensions that `...` stands for."""
    if sum(item is Ellipsis for item in key) > 1:
        raise ViewError(
            "bad-index",
            "an index can have at most one `...`",
            "write `:` instead of the others",
            view.shape,
        )
    skipped = len(view.shape) - (len(key) - 1)
    if skipped < 0:
        raise _too_many(view, key)
    return skipped


# Other indices


def _single(
    view: View, axis: int, item: Any, dynamic: Dynamic | None
) -> tuple[int | None, int, Dynamic | None]:
    """Resolve an index that is not a slice: its remaining size, if any, start, dynamic part."""
    size = view.shape[axis]
    if isinstance(item, DynamicSlice):
        return _dynamic_slice(view, axis, item, dynamic)
    if isinstance(item, DeviceInteger):
        return (
            None,
            0,
            at_run_time(view._replace(dynamic=dynamic), axis, item._offset(view.tensor.buffer)),
        )
    number = item if type(item) is int else _as_int(view, axis, item)
    if not -size <= number < size:
        check_some(view, axis)
        raise ViewError(
            "index-out-of-bounds",
            f"index {number} is outside dimension {axis} of size {size}; shape is {view.shape}",
            f"valid indices are 0 to {size - 1}",
            view.shape,
        )
    stays = axis == 0 and keeps_first(view)
    if stays:
        _check_gathered(view, axis, size == 1)
    return 1 if stays else None, number % size, dynamic


def _dynamic_slice(
    view: View, axis: int, item: DynamicSlice, dynamic: Dynamic | None
) -> tuple[int, int, Dynamic | None]:
    start, size = item
    if not isinstance(start, DeviceInteger):
        first = _as_int(view, axis, start)
        first, stop, _ = _checked(view, axis, first, first + _as_int(view, axis, size), 1)
        return stop - first, first, dynamic
    size = _as_int(view, axis, size)
    if not 0 < size <= view.shape[axis]:
        _checked(view, axis, 0, size, 1)
    register = start._offset(view.tensor.buffer)
    offset = at_run_time(view._replace(dynamic=dynamic), axis, register)
    return size, 0, offset._replace(limit=view.shape[axis] - size + 1)


def _as_int(view: View, axis: int, item: Any) -> int:
    """Convert `item` to an int. Raises `ViewError`."""
    if type(item) is int:
        return item
    item = plain(item)
    if isinstance(item, int) and not isinstance(item, bool):
        return int(item)
    if isinstance(item, DeviceInteger):
        raise ViewError(
            "register-value",
            f"the bounds of a slice of dimension {axis} must be known while the kernel is "
            "compiled, "
            f"but {brief(item)} is not; shape is {view.shape}",
            "a run-time slice is `nl.ds(start, size)`, its size an int",
            view.shape,
        )
    hints = {
        float: "use `//` for whole numbers",
        bool: "masks are not indices; use nl.where or a predicated copy",
        type(None): "expand_dim adds a dimension",
    }
    raise ViewError(
        "bad-index",
        f"dimension {axis} cannot be indexed by {brief(item)}; shape is {view.shape}",
        hints.get(type(item), "use ints, slices, `...` or nl.ds; `select` takes a tensor"),
        view.shape,
    )


def _too_many(view: View, key: tuple[Any, ...]) -> ViewError:
    count = sum(item is not Ellipsis for item in key)
    return ViewError(
        "too-many-indices",
        f"{plural(count, 'index', 'indices')} for {plural(len(view.shape), 'dimension')}; "
        f"shape is {view.shape}",
        "an int index before this one may have dropped a dimension",
        view.shape,
    )


def _check_gathered(view: View, axis: int, everything: bool) -> None:
    """Refuse to slice rows that are gathered at run time."""
    dynamic: Dynamic | None = view.dynamic
    if axis or everything or dynamic is None or dynamic.kind != "vector":
        return
    shape: Shape = view.shape
    raise ViewError(
        "indirect-view",
        f"dimension 0 is gathered at run time and cannot be sliced; shape is {shape}",
        "slice the tensor of indices instead",
        shape,
    )
