"""Hardware access patterns (`ap`) and gathers (`vector_select`, `indirect`).

`ap` replaces shape and strides, and addresses the storage. The public texts disagree on the offset;
nkic follows the method's own documentation: it is added to the view's offset, and None adds
nothing. The dimension of a run-time index refers to the view on which `ap` is called. Whether a
pattern stays inside its tensor is checked when it is used (check/bounds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from nkic.ir.tensors import Dynamic, View
from nkic.language.tensors.views import Shape, ViewError, check_dim, check_some, on_chip
from nkic.language.texts import brief
from nkic.machine.dtypes import DType
from nkic.machine.facts import Register
from nkic.machine.patterns import merged


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
    """Return the run-time offset of `ap`."""
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
    """Convert `count` elements of the view's dtype to elements of `dtype`."""
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
