"""Indexing: `t[key]`, `slice` and `select`, with static and run-time indices.

Unlike Python, a slice past the end is an error and is not truncated: NkiTensor.slice documents 0 <=
start < end <= size, and the hardware would read past the end. An empty view of a tensor in HBM may
exist, for a core without rows to process; no instruction accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from nkic.base.text import plural
from nkic.language.hosted import brief, plain, surface
from nkic.language.registers import DeviceInteger
from nkic.language.views import (
    NOTHING_TO_DO,
    Shape,
    ViewError,
    check_count,
    check_dim,
    check_some,
    interned,
    keeps_first,
    min_rank_of,
    on_chip,
    replaced,
)
from nkic.machine.dtypes import DType
from nkic.machine.operands import Register
from nkic.machine.patterns import merged
from nkic.machine.targets import MAX_RANK
from nkic.program.program import Dynamic, View

# ---- Hardware access patterns (`ap`) and gathers (`vector_select`, `indirect`) ------------------
# `ap` replaces shape and strides, and addresses the storage. The public texts disagree on the
# offset; nkic follows the method's own documentation: it is added to the view's offset, and None
# adds nothing. The dimension of a run-time index refers to the view on which `ap` is called.
# Whether a pattern stays inside its tensor is checked when it is used (compiler/check.py).


def access_pattern(
    view: View,
    pattern: Sequence[Sequence[int]],
    offset: int | None = None,
    scalar: View | Register | None = None,
    vector: View | None = None,
    indirect_dim: int = 0,
    dtype: DType | None = None,
) -> View:
    """`t.ap(...)`: [step, size] pairs over the storage, steps and offset in elements."""
    pairs = _pairs(view, pattern)
    kind = dtype or view.dtype
    shape = tuple(size for _, size in pairs)
    start = _in_elements(view, view.offset, kind, shape) + _offset(view, offset, shape)
    result = View(view.tensor, shape, tuple(step for step, _ in pairs), start, kind)
    dynamic = _dynamic(view, scalar, vector, indirect_dim, kind, shape)
    return (_on_chip(result) if on_chip(view) else result)._replace(dynamic=dynamic)


def vector_select(view: View, dim: int, indices: View) -> View:
    """Gather rows: row i of the result is the row of `view` given by element i of `indices`."""
    check_dim(view, dim)
    check_some(view, dim)
    shape = (indices.shape[0], *view.shape[1:])
    if len(indices.shape) == 2 and indices.shape[1] != 1:
        text = f"the indices must have shape (rows, 1), not {indices.shape}; shape is {view.shape}"
        raise _wrong_index(text, "take one column of the tile", shape, indices)
    if dim != 0:
        raise ViewError(
            "bad-dimension",
            f"vector_select gathers along dimension 0, not {dim}; shape is {view.shape}",
            "permute the tensor in HBM first",
            shape,
        )
    dynamic = _gather(view, indices, view.strides[0], shape)
    return view._replace(shape=shape, dynamic=dynamic)


def indirect(view: View, index: View, count: int | None = None) -> View:
    """`t.indirect(index)`: gather elements of every partition, with shape (partitions, count).

    Element i of every partition is at offset i of `index` along the free dimensions, which must
    form one run.
    """
    number = prod(index.shape) if count is None else count
    shape = (view.shape[0], number if type(number) is int and number > 0 else 1)
    flat = merged(tuple(zip(view.strides[1:], view.shape[1:], strict=True))) or ((1, 1),)
    problem, advice = "", ""
    if not on_chip(view):
        problem = f"indirect works on chip; this tensor is in {view.tensor.buffer.value}"
        advice = "gather from HBM with vector_select and nisa.dma_copy"
    elif view.dynamic is not None:
        problem = "the view already has a run-time index"
    elif shape[1] != number:
        problem = f"num_elem must be an int of at least 1, not {brief(count)}"
    elif not on_chip(index) or index.dynamic is not None:
        problem = "the index must be a tile in SBUF"
    elif len(flat) > 1:
        problem = "the free dimensions have gaps, so that a single offset cannot address them"
        advice = "slice after copying, or call indirect on the whole tensor"
    if problem:
        raise ViewError("indirect-view", f"{problem}; shape is {view.shape}", advice, shape)
    ((step, size),) = flat
    dynamic: Dynamic = Dynamic("columns", index, step, size, 1)
    return View(view.tensor, shape, (view.strides[0], 1), view.offset, view.dtype, dynamic)


def unless_indirect(view: View, operation: Callable[..., View], *args: Any) -> View:
    """Return `operation` of `view`. Raises `ViewError` for a result of `.indirect()`."""
    result = operation(view, *args)
    if view.dynamic is None or view.dynamic.kind != "columns" or result == view:
        return result
    raise ViewError(
        "indirect-view",
        f"the result of `.indirect()` cannot be indexed or reshaped; shape is {view.shape}",
        "slice and reshape before `.indirect()`, or take a part of the index",
        result.shape,
    )


def _gather(view: View, indices: View, stride: int, shape: Shape) -> Dynamic:
    problem, advice = "", ""
    indices = _squeezed(indices)
    count, rows = prod(indices.shape), shape[0]
    if view.dynamic is not None:
        problem = "the view already has a run-time index"
        advice = "apply both indices to the whole tensor, with one `.ap()`"
    elif on_chip(view):
        problem = (
            f"rows can be gathered from HBM only; this tensor is in {view.tensor.buffer.value}"
        )
        advice = "gather while loading from HBM, with nisa.dma_copy"
    elif len(indices.shape) != 2:
        problem = f"the indices must have two dimensions, not shape {indices.shape}"
        advice = f"pass a tile of shape ({rows}, 1)"
    elif count < rows:
        problem = f"the pattern has {rows} rows, and vector_offset has {count} indices"
        advice = f"pass a tile of shape ({rows}, 1), or write a pattern of {count} rows"
    if problem:
        text = f"{problem}; shape is {view.shape}"
        raise _wrong_index(text, advice, shape, indices)
    return Dynamic("vector", indices, stride, view.shape[0], 0)


def _wrong_index(text: str, advice: str, shape: Shape, index: View) -> ViewError:
    return ViewError("indirect-view", text, advice, shape, "vector_offset", index.tensor)


def _squeezed(indices: View) -> View:
    """Drop dimensions of size 1, except the first and a single other one."""
    dims = list(zip(indices.strides, indices.shape, strict=True))
    retained = [dims[0], *(dim for dim in dims[1:] if dim[1] != 1)]
    retained = [*retained, dims[-1]] if len(retained) == 1 and len(dims) > 1 else retained
    strides, shape = zip(*retained, strict=True)
    return indices._replace(shape=shape, strides=strides)


def _dynamic(
    view: View,
    scalar: View | Register | None,
    vector: View | None,
    dim: int,
    dtype: DType,
    shape: Shape,
) -> Dynamic | None:
    if scalar is None and vector is None:
        return None
    check_dim(view, dim)
    check_some(view, dim)
    stride = _in_elements(view, view.strides[dim], dtype, shape)
    problem, advice = "", ""
    if scalar is not None and vector is not None:
        problem = "ap takes either scalar_offset or vector_offset, not both"
        advice = "remove one of them"
    elif vector is not None and dim != 0:
        problem = f"a vector_offset works on indirect_dim 0 only, not {dim}"
        advice = "permute the tensor in HBM first, so that the rows are dimension 0"
    elif dim == 0 and on_chip(view):
        problem = "the partition of an on-chip tensor cannot be chosen at run time"
        advice = "set indirect_dim to a free dimension"
    if problem:
        raise ViewError("indirect-view", f"{problem}; shape is {view.shape}", advice, shape)
    if vector is not None:
        return _gather(view._replace(dynamic=None), vector, stride, shape)
    return Dynamic("scalar", scalar, stride, _indices(view, dim), dim)  # type: ignore[arg-type]


def _indices(view: View, dim: int) -> int:
    """Return the number of indices that a scalar_offset along `dim` may take.

    A dimension of size 1 is equivalent to the next outer one of the same stride: published kernels
    find the dimension by its stride, searching from the last one.
    """
    first = int(on_chip(view))
    while view.shape[dim] == 1 and dim > first and view.strides[dim - 1] == view.strides[dim]:
        dim -= 1
    return view.shape[dim]


def _pairs(view: View, pattern: Any) -> list[tuple[int, int]]:
    pairs = [tuple(pair) if isinstance(pair, tuple | list) else () for pair in pattern]
    check_count(view, pairs)
    good = [len(p) == 2 and all(type(n) is int for n in p) and p[1] > 0 for p in pairs]
    min_rank = 2 if on_chip(view) else 1
    if not all(good) or len(pairs) < min_rank:
        raise ViewError(
            "bad-pattern",
            f"ap takes at least {min_rank} [step, size] pairs of ints, every size at least 1, "
            f"not {brief(list(pattern))}",
            shape=view.shape,
        )
    return pairs


def _offset(view: View, offset: Any, shape: Shape) -> int:
    if offset is None:
        return 0
    if type(offset) is not int:
        raise ViewError(
            "bad-pattern",
            f"the offset of ap must be an int, not {brief(offset)}; shape is {view.shape}",
            "scalar_offset takes registers and tensors",
            shape,
        )
    return offset


def _in_elements(view: View, count: int, dtype: DType, shape: Shape) -> int:
    if dtype.size == view.dtype.size:
        return count
    bytes_ = count * view.dtype.size
    if bytes_ % dtype.size:
        raise ViewError(
            "dtype-view",
            f"byte {bytes_} of {view.tensor.name} is not the start of a {dtype.name}, "
            f"which has {dtype.size} bytes",
            shape=shape,
        )
    return bytes_ // dtype.size


def _on_chip(view: View) -> View:
    """Check that the first pair walks partitions, and return the view."""
    pitch = view.pitch
    step, count = view.strides[0], view.shape[0]
    if count > 1 and step != pitch:
        raise ViewError(
            "partition-dimension",
            f"the first pair of a pattern is the partition dimension: its step must be "
            f"{pitch}, the elements per partition, not {step}",
            f"write [{pitch}, {count}], or load with dma_copy to skip partitions",
            view.shape,
        )
    return view._replace(strides=(pitch, *view.strides[1:]))


@surface("start size __iter__", called=True)
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
    if any(item is None for item in key):
        raise _new_dimension(view, key)
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
        raise ViewError(
            "bad-index",
            f"a slice of a tensor needs a step of at least 1, not {step}",
            "access patterns cannot run backwards; reverse the loop that uses the slice"
            if step
            else "write a step of 1 for every element; t.broadcast(dim, size) repeats one",
            view.shape,
        )
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


def _out_of_bounds(view: View, axis: int, start: int, stop: int, wanted: Shape) -> ViewError:
    size = view.shape[axis]
    help = (
        f"tensor slices are not truncated: write `min({stop}, {size})`, or choose a tile size that "
        f"divides {size}"
    )
    if start < 0:
        help = "start at 0 or above; only the bounds of `t[a:b]` may count from the end"
    elif start >= size:
        help = f"all of it is outside: dimension {axis} ends at {size}; let the loop end there"
    return ViewError(
        "index-out-of-bounds",
        f"slice {start}:{stop} reaches outside dimension {axis} of size {size}; "
        f"shape is {view.shape}",
        help,
        wanted,
    )


LEAVE_OUT = (
    "leave None out; if what it is copied to or combined with has a leading dimension of 1, index "
    "that with [0]"
)


def _new_dimension(view: View, key: tuple[Any, ...]) -> ViewError:
    """Return the error for `t[:, None]`, which advises a reshape: all versions have that."""
    rest = _index(view, tuple(item for item in key if item is not None))
    kept = [isinstance(item, slice | DynamicSlice) for item in key]
    kept[0] |= keeps_first(view) and key[0] is not None
    dots = next((n for n, item in enumerate(key) if item is Ellipsis), len(key))
    sizes = list(rest.shape)
    for n in reversed(range(len(key))):
        if key[n] is None:
            sizes.insert(sum(kept[:n]) if n < dots else len(rest.shape) - sum(kept[n:]), 1)
    hint = f"write `.reshape({tuple(sizes)})` after an index without None"
    if keeps_first(view) and key[0] is None:
        hint = f"the first dimension of a tile is that of its partitions: {LEAVE_OUT}"
    elif len(sizes) > MAX_RANK:
        hint = f"leave None out: a tensor has at most {MAX_RANK} dimensions, not {len(sizes)}"
    text = f"None in an index does not add a dimension in NKI; shape is {view.shape}"
    return ViewError("bad-index", text, hint, view.shape)


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
        range: "write a slice, `0:128` for `range(128)`",
    }
    hint = hints.get(type(item), "use ints, slices, `...` or nl.ds; `select` takes a tensor")
    indices = getattr(item, "_access", None)
    if isinstance(indices, View) and prod(indices.shape) > 1:
        is_mask = indices.shape == view.shape and indices.shape[-1] > 1
        hint = hints[bool] if is_mask else gathering(indices.shape)
    raise ViewError(
        "bad-index",
        f"dimension {axis} cannot be indexed by {brief(item)}; shape is {view.shape}",
        hint,
        view.shape,
    )


def gathering(indices: Shape) -> str:
    """Return how rows are gathered by a tensor of indices."""
    return (
        f"gather {indices[0]} rows of n elements with ap([[n, {indices[0]}], [1, n]], "
        "vector_offset=indices, indirect_dim=0), or slice the indices down to one element"
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
