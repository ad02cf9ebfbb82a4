"""Reshapes: new dimensions over the same elements, if strides can express them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nkic.ir.tensors import View
from nkic.language.sizes import volume
from nkic.language.tensors.views import (
    Shape,
    ViewError,
    check_dim,
    check_free,
    check_rank,
    keeps_first,
    permute,
    row_major,
)
from nkic.language.texts import brief


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
    known = volume(n for n in shape if n != -1)
    if shape.count(-1) != 1 or known <= 0 or view.shape[dim] % known:
        return _sizes(view, shape)
    return _sizes(view, (view.shape[dim] // known if n == -1 else n for n in shape))


def _sizes(view: View, shape: Any) -> Shape:
    sizes, min_size = tuple(shape), int(0 not in view.shape)
    if not sizes or any(type(n) is not int or n < min_size for n in sizes):
        raise ViewError(
            "bad-shape",
            f"a shape must consist of ints of at least 1, not {sizes}; shape was {view.shape}",
            "only reshape_dim infers one size, written -1",
            view.shape,
        )
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
