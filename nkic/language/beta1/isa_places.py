"""Predicates, index patterns, fills and random numbers of Beta 1's `nki.isa`."""

from __future__ import annotations

from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.beta1.emit import Part, Producer, emit, hide, new, note_part, result
from nkic.language.beta1.extents import (
    Extent,
    axes_of,
    column,
    extent,
    part_inside,
    select,
    spread,
    startable,
)
from nkic.language.beta1.indices import ONE, Index, as_index
from nkic.language.beta1.isa_moves import ANY, chosen
from nkic.language.beta1.isa_vectors import per_partition
from nkic.language.beta1.masks import All, Compared, Mask
from nkic.language.beta1.moving import (
    check_kind,
    copy,
    exact,
    in_sbuf,
    kind,
    made_like,
    number,
    recorded,
    tile,
)
from nkic.language.beta1.operators import operator
from nkic.language.beta1.tiles import Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import reduce_cmd
from nkic.language.hosted import plain
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.trace import active
from nkic.machine import dtypes


def tensor_copy_predicated(
    *,
    src: Any,
    dst: Any,
    predicate: Any,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
) -> None:
    """dst = src where the predicate is not 0."""
    goal, asked, source = tile(dst, "dst"), _bits(tile(predicate, "predicate")), number(src)
    check_kind(dtype, goal)
    where = exact(extent(mask, goal.shape, axes_of(goal.shape, goal, asked)), "the copy")
    if where.empty:
        return
    given = spread(tile(source), goal.shape, where) if isinstance(source, NkiTensor) else source
    emit(
        "tensor_copy_predicated",
        part_inside(goal, where),
        src=given,
        predicate=spread(asked, goal.shape, where),
        reverse_pred=reverse_pred,
    )


def _bits(asked: Tile) -> Tile:
    """Reinterpret a predicate of bool as bytes."""
    return asked.view(dtypes.UINT8) if asked.dtype is dtypes.BOOL else asked


def range_select(
    *,
    on_true_tile: Any,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any = reduce_cmd.idle,
    reduce_res: Any = None,
    reduce_op: Any = None,
    range_start: Any = 0,
    on_false_value: Any = None,
    mask: Any = None,
    dtype: Any = None,
) -> Tile:
    """Return on_true_tile where the index in the partition is within bounds."""
    source = tile(on_true_tile, "on_true_tile")
    made, where = made_like(source, dtype, mask)
    if where.empty:
        return made
    return recorded(
        "range_select",
        made,
        where,
        on_true_tile=part_inside(source, where),
        comp_op0=operator(comp_op0, "comp_op0"),
        comp_op1=operator(comp_op1, "comp_op1"),
        bound0=per_partition(bound0, where),
        bound1=per_partition(bound1, where),
        reduce_cmd=reduce_cmd,
        reduce_res=None if reduce_res is None else column(tile(reduce_res), where),
        reduce_op=operator(reduce_op, "reduce_op"),
        range_start=number(range_start) + (where.box.starts[-1] if where.box else 0),
        on_false_value=on_false_value,
    )


def select_reduce(
    *,
    dst: Any,
    predicate: Any,
    on_true: Any,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = reduce_cmd.idle,
    reduce_op: Any = None,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
) -> None:
    """dst = on_true where the predicate is not 0, else on_false."""
    goal, asked = tile(dst, "dst"), _bits(tile(predicate, "predicate"))
    check_kind(dtype, goal)
    where = exact(extent(mask, goal.shape, axes_of(goal.shape, goal, asked)), "select_reduce")
    if where.empty:
        return
    emit(
        "select_reduce",
        part_inside(goal, where),
        predicate=spread(asked, goal.shape, where),
        on_true=spread(tile(on_true, "on_true"), goal.shape, where),
        on_false=per_partition(on_false, where),
        reduce_res=None if reduce_res is None else column(tile(reduce_res), where),
        reduce_cmd=reduce_cmd,
        reduce_op=operator(reduce_op, "reduce_op"),
        reverse_pred=reverse_pred,
    )


def iota(expr: Any, dtype: Any, *, mask: Any = None) -> Tile:
    """Return the values of an index expression; for a number, a tile of one element."""
    index = as_index(expr)
    if index is None:
        text = "nisa.iota takes an index expression of 2 dimensions or more"
        raise KernelError("argument-kind", text, help="write nl.arange(n)[None, :]")
    index = index if index.dims else Index(index.start, (ONE, ONE))
    dims = index.dims
    made = new(index.shape, as_dtype(dtype))
    made._axes = tuple(dim.axes for dim in dims)
    where = startable(extent(mask, made.shape, made._axes), made.shape)
    if where.empty:
        hide(made)
        return made
    start, sizes = index.start, index.shape
    if where.box is not None:
        sizes = where.box.sizes
        start += sum(at * dim.step for at, dim in zip(where.box.starts, dims, strict=True))
    return recorded(
        "iota",
        made,
        where,
        pattern=[[d.step, n] for d, n in zip(dims[1:], sizes[1:], strict=True)] or [[0, 1]],
        offset=start,
        channel_multiplier=dims[0].step,
    )


def affine_select(
    pred: Any,
    on_true_tile: Any,
    on_false_value: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
) -> Tile:
    """Return on_true_tile where a condition on indices is true, else a number."""
    source = in_sbuf(tile(on_true_tile, "on_true_tile"))
    made, where = made_like(source, dtype, mask)
    if where.empty:
        return made
    if isinstance(pred, bool):
        if pred:
            return copy(source, mask=mask, dtype=made.dtype)
        return recorded("memset", made, where, value=number(on_false_value))
    if not isinstance(pred, Mask):
        text = "pred is a comparison of index expressions"
        raise KernelError("argument-kind", text, help="write pred=(i_p >= i_f)", argument="pred")
    condition = pred.placed(axes_of(source.shape, source), source.shape)
    parts = condition.parts if isinstance(condition, All) else (condition,)
    given = part_inside(source, where)
    goal = part_inside(made, where)
    for part in parts:
        if not isinstance(part, Compared):
            text = "pred of affine_select joins comparisons with & alone"
            raise KernelError("argument-kind", text, argument="pred")
        select(goal, _within(part, where), given, number(on_false_value))
        given = goal
    if len(parts) == 1:
        _note(made, where)
    note_part(made, Part(where.box, where.rest))
    return made


def _note(made: Tile, where: Extent) -> None:
    """Note that the last instruction wrote a new tile."""

    body = active().body
    made._written_by = Producer(body, len(body) - 1, 0, where.box, where.rest)


def _within(condition: Compared, where: Extent) -> Compared:
    """Restrict a condition to the positions of a box."""
    if where.box is None:
        return condition
    index = condition.index
    moved = sum(at * dim.step for at, dim in zip(where.box.starts, index.dims, strict=True))
    dims = tuple(
        dim._replace(size=size) for dim, size in zip(index.dims, where.box.sizes, strict=True)
    )
    return Compared(Index(index.start + moved, dims), condition.symbol)


def memset(shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = ANY) -> Tile:
    """Return a tile filled with a number."""
    made = new(tuple(int(plain(size)) for size in shape), as_dtype(dtype))
    where = startable(extent(mask, made.shape, made._axes), made.shape)
    if where.empty:
        hide(made)
        return made
    return recorded("memset", made, where, value=number(value), engine=chosen(engine))


def dropout(data: Any, prob: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return data with elements replaced by 0 at random."""
    source = tile(data, "data")
    made, where = made_like(source, dtype, mask)
    if where.empty:
        return made
    part = spread(source, made.shape, where)
    return recorded("dropout", made, where, data=part, prob=per_partition(prob, where))


def local_gather(
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int = 1,
    num_valid_indices: Any = None,
    *,
    mask: Any = None,
) -> Tile:
    """Gather in each 16 partitions the elements that start at each index."""
    source, places = tile(src_buffer, "src_buffer"), tile(index, "index")
    if mask is not None:
        raise KernelError(
            "argument-kind", "nkic does not support mask= of local_gather", argument="mask"
        )
    most = places.shape[1] * 16 if num_valid_indices is None else int(num_valid_indices)
    sizes = (most,) if num_elem_per_idx == 1 else (most, num_elem_per_idx)
    made = new((source.shape[0], *sizes), source.dtype)
    return result(
        "local_gather",
        made,
        src_buffer=source,
        index=places,
        num_elem_per_idx=num_elem_per_idx,
        num_valid_indices=num_valid_indices,
    )


def sequence_bounds(*, segment_ids: Any, dtype: Any = None) -> Tile:
    """Return the start and end of each element's segment."""
    source = tile(segment_ids, "segment_ids")
    made = new((source.shape[0], 2, source.shape[1]), kind(dtype, source.dtype))
    return result("sequence_bounds", made, segment_ids=source)
