"""Views of tensors: operations that reorder, repeat, add or drop dimensions.

Every function takes a `View` and returns a new one; nothing is copied. Raises `ViewError` for what
strides cannot express. Indexing is in indexing.py, reshapes in reshapes.py, hardware patterns and
run-time indices in patterns.py.

On chip, dimension 0 is the partition dimension: it stays outermost, its stride stays the number of
elements per partition, and a view never has fewer than two dimensions. In HBM a view has at least
one. Source: NkiTensor's documentation, and the language guide's section on indexing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.text import grouped
from nkic.language.hosted import brief
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer
from nkic.program.program import Tensor, View

# ---- Products of sizes that kernels give --------------------------------------------------------

_MOST_BITS = 1 << 13  # as many as an integer of a kernel may have


def volume(sizes: Iterable[int]) -> int:
    """Return the product of sizes. Raises `KernelError` before it takes long to compute."""
    result = 1
    for size in sizes:
        result *= size
        if result.bit_length() > _MOST_BITS:
            raise KernelError(
                "too-large",
                f"the product of these sizes has more than {_MOST_BITS:,} bits",
                help="give a shape that fits in memory",
            )
    return result


Shape = tuple[int, ...]

SBUF, PSUM = Buffer.SBUF, Buffer.PSUM
NOTHING_TO_DO = "skip the instruction if there is nothing to do"


class ViewError(Exception):
    """A view that cannot be made. `shape` is the intended shape, as far as known.

    `argument` names the parameter that is wrong, `index` is the tensor that was passed for it.
    """

    def __init__(
        self,
        slug: str,
        message: str,
        help: str = "",
        shape: Shape = (),
        argument: str = "",
        index: Tensor | None = None,
    ) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.help = help
        self.shape = shape
        self.argument = argument
        self.index = index


@lru_cache(maxsize=4096)
def interned(sizes: Shape) -> Shape:
    """Return one object for all equal shapes or strides: many views have few forms."""
    return sizes


@lru_cache(maxsize=4096)
def row_major(shape: Shape) -> Shape:
    """Return the strides of a dense array in C order."""
    strides, step = [1] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def whole(tensor: Tensor) -> View:
    shape = tensor.shape
    return tuple.__new__(View, (tensor, shape, row_major(shape), 0, tensor.dtype, None))


def on_chip(view: View) -> bool:
    """Return whether the view has a partition dimension."""
    buffer = view.tensor.buffer
    return buffer is SBUF or buffer is PSUM


def keeps_first(view: View) -> bool:
    """Return whether dimension 0 must stay first: partitions, or the rows of a gather."""
    return on_chip(view) or (view.dynamic is not None and view.dynamic.kind == "vector")


def min_rank_of(view: View) -> int:
    """Return the lowest rank of a view in this buffer."""
    return 2 if on_chip(view) else 1


def replaced(values: Shape, dim: int, value: int) -> Shape:
    return (*values[:dim], value, *values[dim + 1 :])


# Operations


def permute(view: View, dims: Shape) -> View:
    dims = tuple(dims)
    if sorted(dims) != list(range(len(view.shape))):
        raise ViewError(
            "bad-dimension",
            f"permute needs each of the dimensions 0 to {len(view.shape) - 1} once, not {dims}",
            shape=view.shape,
        )
    shape = tuple(view.shape[d] for d in dims)
    if dims[0] != 0 and keeps_first(view):
        raise ViewError(
            "partition-dimension",
            f"permute{dims} would move the partition dimension; shape is {view.shape}",
            "dims[0] must be 0; nc_transpose and dma_transpose move data across partitions",
            shape,
        )
    return view._replace(shape=shape, strides=tuple(view.strides[d] for d in dims))


def broadcast(view: View, dim: int, size: int) -> View:
    check_dim(view, dim)
    if view.shape[dim] != 1 or size < 1:
        raise ViewError(
            "broadcast-size",
            f"broadcast can only repeat a dimension of size 1, at least once; dimension {dim} has "
            f"size {view.shape[dim]} and should become {size}; shape is {view.shape}",
            f"a row is repeated with .reshape((1, {view.shape[0]})).broadcast(0, {size})"
            if len(view.shape) == 1
            else "",
            shape=replaced(view.shape, dim, max(1, size)),
        )
    shape = replaced(view.shape, dim, size)
    check_free(view, dim, "broadcast", shape)
    return view._replace(shape=shape, strides=replaced(view.strides, dim, 0))


def expand_dim(view: View, dim: int) -> View:
    """Insert a dimension of size 1 at position `dim`."""
    rank = len(view.shape)
    if type(dim) is not int or not 0 <= dim <= rank:
        raise _no_dim(view, dim, rank)
    shape = (*view.shape[:dim], 1, *view.shape[dim:])
    check_free(view, dim, "expand_dim", shape)
    stride = view.strides[dim] * view.shape[dim] if dim < rank else 1
    return view._replace(shape=shape, strides=(*view.strides[:dim], stride, *view.strides[dim:]))


def squeeze_dim(view: View, dim: int) -> View:
    check_dim(view, dim)
    if view.shape[dim] != 1:
        raise ViewError(
            "broadcast-size",
            f"squeeze_dim can only drop a dimension of size 1; dimension {dim} has size "
            f"{view.shape[dim]}; shape is {view.shape}",
            f"select({dim}, i) takes one element of it",
            view.shape,
        )
    shape = view.shape[:dim] + view.shape[dim + 1 :]
    check_free(view, dim, "squeeze_dim", shape or view.shape)
    check_rank(view, shape)
    return view._replace(shape=shape, strides=view.strides[:dim] + view.strides[dim + 1 :])


def reinterpret(view: View, dtype: DType) -> View:
    """Reinterpret the same bytes as elements of `dtype`, which changes the last size."""
    old, new = view.dtype.size, dtype.size
    if old == new:
        return view._replace(dtype=dtype)
    last = len(view.shape) - 1
    min_size = min(1, view.shape[last])
    shape = replaced(view.shape, last, max(min_size, view.shape[last] * old // new))
    if view.dynamic is not None:
        raise ViewError(
            "indirect-view", "view(dtype) must come before a run-time index", shape=shape
        )
    if view.strides[last] != 1 and view.shape[last] != 1:
        raise _cannot_view(view, dtype, f"last dimension has stride {view.strides[last]}", shape)
    numbers = (view.offset, view.shape[last], *view.strides[:last])
    if any(number * old % new for number in numbers):
        raise _cannot_view(
            view, dtype, f"sizes and offsets are not all multiples of {new} bytes", shape
        )
    strides = tuple(stride * old // new for stride in view.strides[:last])
    return View(view.tensor, shape, (*strides, 1), view.offset * old // new, dtype)


def _cannot_view(view: View, dtype: DType, reason: str, shape: Shape) -> ViewError:
    return ViewError(
        "dtype-view",
        f"{view.dtype.name}{list(view.shape)} cannot be viewed as {dtype.name}: its {reason}",
        "take view(dtype) of the whole tensor, before slicing",
        shape,
    )


# Queries


def pattern(view: View) -> list[list[int]]:
    """Return [stride, size] of every dimension, in the form of `ap`."""
    return [[stride, size] for stride, size in zip(view.strides, view.shape, strict=True)]


def is_contiguous(view: View) -> bool:
    """Return whether the elements are dense in row-major order; on chip, per partition."""
    dims = range(1 if on_chip(view) else 0, len(view.shape))
    dense = row_major(view.shape)
    return all(view.strides[d] == dense[d] for d in dims if view.shape[d] != 1)


# Shared checks


def check_dim(view: View, dim: Any) -> None:
    if type(dim) is not int or not 0 <= dim < len(view.shape):
        raise _no_dim(view, dim, len(view.shape) - 1)


def _no_dim(view: View, dim: Any, last: int) -> ViewError:
    return ViewError(
        "bad-dimension",
        f"there is no dimension {brief(dim)}: dimensions are 0 to {last}; shape is {view.shape}",
        shape=view.shape,
    )


def check_some(view: View, dim: int) -> None:
    if not view.shape[dim]:
        raise ViewError(
            "empty-slice",
            f"dimension {dim} is empty, so it cannot be indexed; shape is {view.shape}",
            NOTHING_TO_DO,
            replaced(view.shape, dim, 1),
        )


def check_free(view: View, dim: int, operation: str, shape: Shape) -> None:
    """Check that `operation` does not change the partition dimension. `shape` is its result's."""
    if dim == 0 and keeps_first(view):
        raise ViewError(
            "partition-dimension",
            f"{operation} cannot change dimension 0, the partition dimension; "
            f"shape is {view.shape}",
            "nl.broadcast_to(t, shape) repeats a partition, as a load of t.broadcast(0, n) from HBM"
            if operation == "broadcast"
            else "move data between partitions with an instruction: nc_transpose or dma_copy",
            shape,
        )


MOST_DIMENSIONS = 32  # of a view: no access pattern needs so many


def check_count(view: View, sizes: Sequence[Any]) -> None:
    if len(sizes) > MOST_DIMENSIONS:
        raise ViewError(
            "bad-dimension",
            f"a view has at most {MOST_DIMENSIONS} dimensions, not {grouped(len(sizes))}",
            "merge dimensions that follow each other",
            view.shape,
        )


def check_rank(view: View, shape: Shape) -> None:
    """Check that `shape` has enough dimensions for the view's buffer."""
    min_rank = min_rank_of(view)
    if len(shape) < min_rank:
        raise ViewError(
            "bad-dimension",
            f"a view in {view.tensor.buffer.value} must have at least {min_rank} dimensions; "
            f"{shape} has {len(shape)}",
            "keep a last dimension of size 1",
            view.shape,
        )


# ---- Reshapes: new dimensions over the same elements, if strides can express them ---------------


class MergedDimension(NamedTuple):
    """Neighbouring dimensions that can be merged: `size` elements, `stride` apart."""

    size: int
    stride: int


def reshape(view: View, shape: Sequence[int]) -> View:
    """Return the elements in the same order under `shape`. No size is inferred."""
    wanted = _sizes(view, shape)
    if volume(wanted) != volume(view.shape):
        raise ViewError(
            "reshape-size",
            f"reshape from {view.shape} to {wanted} would change the number of elements "
            f"from {volume(view.shape)} to {volume(wanted)}",
            f"choose sizes with the product {volume(view.shape)}, or slice first",
            shape=wanted,
        )
    check_rank(view, wanted)
    if not keeps_first(view):
        return view._replace(shape=wanted, strides=_strides(view, 0, len(view.shape), wanted))
    if wanted[0] != view.shape[0]:
        raise ViewError(
            "partition-dimension",
            f"reshape from {view.shape} to {wanted} would change the partition dimension "
            f"from {view.shape[0]} to {wanted[0]}",
            "reshape the tensor in HBM before loading it, or move data with an instruction",
            wanted,
        )
    inner = _strides(view, 1, len(view.shape), wanted[1:])
    return view._replace(shape=wanted, strides=(view.strides[0], *inner))


def reshape_dim(view: View, dim: int, shape: Sequence[int]) -> View:
    """Split dimension `dim` into `shape`, in which one size may be -1: inferred."""
    check_dim(view, dim)
    sizes = _inferred(view, dim, tuple(shape))
    wanted = (*view.shape[:dim], *sizes, *view.shape[dim + 1 :])
    if volume(sizes) != view.shape[dim]:
        raise ViewError(
            "reshape-size",
            f"dimension {dim} of size {view.shape[dim]} does not split into {tuple(shape)}; "
            f"shape is {view.shape}",
            shape=view.shape,
        )
    if len(sizes) > 1:
        check_free(view, dim, "reshape_dim", wanted)
    inner = _strides(view, dim, dim + 1, sizes)
    return view._replace(
        shape=wanted, strides=(*view.strides[:dim], *inner, *view.strides[dim + 1 :])
    )


def flatten_dims(view: View, start: int, end: int) -> View:
    """Merge dimensions `start` to `end`, inclusive."""
    check_dim(view, start)
    check_dim(view, end)
    if end < start:
        raise ViewError(
            "bad-dimension",
            f"flatten_dims goes from {start} up to {end}; the end comes before the start",
            shape=view.shape,
        )
    merged = volume(view.shape[start : end + 1])
    wanted = (*view.shape[:start], merged, *view.shape[end + 1 :])
    if end > start:
        check_free(view, start, "flatten_dims", wanted)
    check_rank(view, wanted)
    inner = _strides(view, start, end + 1, (merged,))
    return view._replace(
        shape=wanted, strides=(*view.strides[:start], *inner, *view.strides[end + 1 :])
    )


def _inferred(view: View, dim: int, shape: Shape) -> Shape:
    """Return `shape` with -1, if present, replaced by the inferred size."""
    return _sizes(view, _filled(view.shape[dim], shape))


def _filled(elements: int, shape: Shape) -> Shape:
    known = volume(n for n in shape if n != -1)
    if shape.count(-1) != 1 or known <= 0 or elements % known:
        return shape
    return tuple(elements // known if n == -1 else n for n in shape)


def meant_shape(view: View, shape: Shape) -> Shape:
    """Return the shape that a reshape to `shape` means elsewhere, where one size may be -1.

    On chip, the partitions stay as they are.
    """
    filled = _filled(volume(view.shape), shape)
    if filled == shape or not keeps_first(view) or filled[0] == view.shape[0]:
        return filled
    return _filled(volume(view.shape), (view.shape[0], *shape))


def _sizes(view: View, shape: Any) -> Shape:
    sizes, min_size = tuple(shape), int(0 not in view.shape)
    check_count(view, sizes)
    if not sizes or any(type(n) is not int or n < min_size for n in sizes):
        text = f"a shape must consist of ints of at least 1, not {sizes}; shape was {view.shape}"
        help = ""
        if -1 in sizes:
            help = "only reshape_dim infers one size, written -1"
            is_shape = all(type(n) is int for n in sizes)
            if is_shape and -1 not in (meant := meant_shape(view, sizes)):
                help = f"write .reshape({meant}): {help}"
        if any(isinstance(n, float) for n in sizes):
            help = "use `//` instead of `/`, which gives an int"
        raise ViewError("bad-shape", text, help, view.shape)
    return sizes


def _strides(view: View, start: int, end: int, wanted: Shape) -> Shape:
    """Return strides for `wanted` over dimensions `start` to `end`. Raises `ViewError`.

    Dimensions that are dense with respect to each other form one run. A new dimension fits if it
    divides the remaining size of a run. Empty dimensions may have any strides.
    """
    if 0 in wanted:
        return row_major(wanted)
    runs = _runs(view.shape[start:end], view.strides[start:end])
    strides: list[int] = []
    remaining, stride = runs.pop()
    for size in reversed(wanted):
        if remaining == 1 and size > 1 and runs:
            remaining, stride = runs.pop()
        if remaining % size:
            raise _scattered(view, start, wanted)
        strides.append(stride)
        remaining //= size
        stride *= size
    return tuple(reversed(strides))


def _runs(shape: Shape, strides: Shape) -> list[MergedDimension]:
    """Return `shape` as the fewest runs possible, outermost first."""
    runs: list[MergedDimension] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1].stride == size * stride:
            runs[-1] = MergedDimension(runs[-1].size * size, stride)
        else:
            runs.append(MergedDimension(size, stride))
    return runs or [MergedDimension(1, 1)]


def _scattered(view: View, start: int, wanted: Shape) -> ViewError:
    shape = (*view.shape[:start], *wanted)
    return ViewError(
        "reshape-layout",
        f"{view.shape} with strides {view.strides} cannot become {shape} without a copy",
        "copy it to a new tensor first, or reshape before slicing and permuting",
        shape,
    )


# Einops-style patterns


def rearrange(
    view: View, source: Sequence[Any], target: Sequence[Any], sizes: Mapping[str, int]
) -> View:
    """Split the dimensions as named in `source`, then reorder and merge them as in `target`.

    A pattern holds names, and tuples of names for dimensions composed of several.
    """
    before, after = _names(view, source), _names(view, target)
    _check_names(view, before, after, sizes)
    split = view
    for axis, group in reversed(list(enumerate(before))):
        if len(group) > 1:
            split = reshape_dim(split, axis, tuple(sizes.get(name, -1) for name in group))
    order = [name for group in before for name in group]
    moved = permute(split, tuple(order.index(name) for group in after for name in group))
    for axis, group in enumerate(after):
        if len(group) > 1:
            moved = flatten_dims(moved, axis, axis + len(group) - 1)
    return moved


def _names(view: View, pattern: Sequence[Any]) -> list[tuple[str, ...]]:
    groups = [(item,) if isinstance(item, str) else tuple(item) for item in pattern]
    if not all(group and all(isinstance(name, str) for name in group) for group in groups):
        raise ViewError(
            "bad-pattern",
            f"a pattern must consist of names and tuples of names, not {brief(tuple(pattern))}",
            shape=view.shape,
        )
    return groups


def _check_names(
    view: View,
    before: list[tuple[str, ...]],
    after: list[tuple[str, ...]],
    sizes: Mapping[str, int],
) -> None:
    first = sorted(name for group in before for name in group)
    last = sorted(name for group in after for name in group)
    problem = ""
    if len(before) != len(view.shape):
        problem = f"the source pattern has {len(before)} dimensions, the tensor {len(view.shape)}"
    elif any(a == b for a, b in pairwise(first)):
        problem = f"a name appears twice in {before}"
    elif first != last:
        problem = f"source and target name different dimensions: {first} and {last}"
    elif unknown := sorted(set(sizes) - set(first)):
        problem = f"there is no dimension called {unknown[0]}"
    else:
        problem = _wrong_size(view, before, sizes)
    if problem:
        raise ViewError("bad-pattern", f"{problem}; shape is {view.shape}", shape=view.shape)


def _wrong_size(view: View, before: list[tuple[str, ...]], sizes: Mapping[str, int]) -> str:
    for group, size in zip(before, view.shape, strict=True):
        if sum(name not in sizes for name in group) > 1:
            return f"only one size in {group} can be inferred"
        if len(group) == 1 and sizes.get(group[0], size) != size:
            return f"dimension {group[0]} has size {size}, not {sizes[group[0]]}"
    return ""
