"""Predicates, index patterns, and fills of Beta 1's `nki.isa`."""

from __future__ import annotations

from typing import Any

from nkic.base.device import KernelError
from nkic.language.beta1.emit import Part, Producer, emit, hide, new, note_part, result
from nkic.language.beta1.extents import (
    Extent,
    axes_of,
    expanded,
    extent_of,
    part_inside,
    select,
    startable,
)
from nkic.language.beta1.indices import ONE, Index, as_index
from nkic.language.beta1.isa_vectors import ANY, converted, engine_choice
from nkic.language.beta1.masks import Compared, Mask, conjuncts
from nkic.language.beta1.moving import (
    box_of,
    check_kind,
    copy,
    in_sbuf,
    kind,
    number,
    output_like,
    record,
    tile,
)
from nkic.language.beta1.tiles import Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import reduce_cmd
from nkic.language.hosted import whole_number, whole_numbers
from nkic.language.tensor import NkiTensor
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
    target, selector, source = tile(dst, "dst"), _bits(tile(predicate, "predicate")), number(src)
    check_kind(dtype, target)
    region = box_of(mask, "the copy", target, selector)
    if region.empty:
        return
    if isinstance(source, NkiTensor):
        source = expanded(tile(source), target.shape, region)
    emit(
        "tensor_copy_predicated",
        part_inside(target, region),
        src=source,
        predicate=expanded(selector, target.shape, region),
        reverse_pred=reverse_pred,
    )


def _bits(selector: Tile) -> Tile:
    """Reinterpret a predicate of bool as bytes."""
    return selector.view(dtypes.UINT8) if selector.dtype is dtypes.BOOL else selector


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
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "range_select",
        output,
        region,
        on_true_tile=part_inside(source, region),
        **converted(
            "range_select",
            region,
            comp_op0=comp_op0,
            comp_op1=comp_op1,
            bound0=bound0,
            bound1=bound1,
            reduce_cmd=reduce_cmd,
            reduce_res=reduce_res,
            reduce_op=reduce_op,
        ),
        range_start=number(range_start) + (region.box.starts[-1] if region.box else 0),
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
    target, selector = tile(dst, "dst"), _bits(tile(predicate, "predicate"))
    check_kind(dtype, target)
    region = box_of(mask, "select_reduce", target, selector)
    if region.empty:
        return
    emit(
        "select_reduce",
        part_inside(target, region),
        predicate=expanded(selector, target.shape, region),
        on_true=expanded(tile(on_true, "on_true"), target.shape, region),
        **converted(
            "select_reduce", region, on_false=on_false, reduce_res=reduce_res, reduce_op=reduce_op
        ),
        reduce_cmd=reduce_cmd,
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
    output = new(index.shape, as_dtype(dtype))
    output._axes = tuple(dim.axes for dim in dims)
    region = startable(extent_of(output, mask), output.shape)
    if region.empty:
        hide(output)
        return output
    start, sizes = index.start, index.shape
    if region.box is not None:
        sizes = region.box.sizes
        start += sum(at * dim.step for at, dim in zip(region.box.starts, dims, strict=True))
    return record(
        "iota",
        output,
        region,
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
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    if isinstance(pred, bool):
        if pred:
            return copy(source, mask=mask, dtype=output.dtype)
        return record("memset", output, region, value=number(on_false_value))
    if not isinstance(pred, Mask):
        text = "pred is a comparison of index expressions"
        raise KernelError("argument-kind", text, help="write pred=(i_p >= i_f)", argument="pred")
    comparisons = _comparisons(pred.placed(axes_of(source.shape, source), source.shape))
    selected = part_inside(source, region)
    target = part_inside(output, region)
    for comparison in comparisons:
        select(target, _within(comparison, region), selected, number(on_false_value))
        selected = target
    if len(comparisons) == 1:
        _note_producer(output, region)
    note_part(output, Part(region.box, region.remaining))
    return output


def _comparisons(condition: Mask) -> list[Compared]:
    """Return the comparisons that a condition joins with `&`. Raises KernelError for others."""
    comparisons = [part for part in conjuncts(condition) if isinstance(part, Compared)]
    if len(comparisons) < len(conjuncts(condition)):
        text = "pred of affine_select joins comparisons with & alone"
        raise KernelError("argument-kind", text, argument="pred")
    return comparisons


def _note_producer(output: Tile, region: Extent) -> None:
    """Record that the last instruction wrote a new tile."""
    body = active().body
    output._written_by = Producer(body, len(body) - 1, 0, region.box, region.remaining)


def _within(condition: Compared, region: Extent) -> Compared:
    """Restrict a condition to the positions of a box."""
    if region.box is None:
        return condition
    index = condition.index
    offset = sum(at * dim.step for at, dim in zip(region.box.starts, index.dims, strict=True))
    dims = tuple(
        dim._replace(size=size) for dim, size in zip(index.dims, region.box.sizes, strict=True)
    )
    return Compared(Index(index.start + offset, dims), condition.symbol)


def memset(shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = ANY) -> Tile:
    """Return a tile filled with a number."""
    output = new(whole_numbers(shape, "the shape"), as_dtype(dtype))
    region = startable(extent_of(output, mask), output.shape)
    if region.empty:
        hide(output)
        return output
    return record("memset", output, region, value=number(value), engine=engine_choice(engine))


def local_gather(
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int = 1,
    num_valid_indices: Any = None,
    *,
    mask: Any = None,
) -> Tile:
    """Gather in each 16 partitions the elements that start at each index."""
    source, indices = tile(src_buffer, "src_buffer"), tile(index, "index")
    if mask is not None:
        raise KernelError(
            "argument-kind", "nkic does not support mask= of local_gather", argument="mask"
        )
    count = indices.shape[1] * 16
    if num_valid_indices is not None:
        count = whole_number(num_valid_indices, "num_valid_indices")
    sizes = (count,) if num_elem_per_idx == 1 else (count, num_elem_per_idx)
    output = new((source.shape[0], *sizes), source.dtype)
    return result(
        "local_gather",
        output,
        src_buffer=source,
        index=indices,
        num_elem_per_idx=num_elem_per_idx,
        num_valid_indices=num_valid_indices,
    )


def sequence_bounds(*, segment_ids: Any, dtype: Any = None) -> Tile:
    """Return the start and end of each element's segment."""
    source = tile(segment_ids, "segment_ids")
    output = new((source.shape[0], 2, source.shape[1]), kind(dtype, source.dtype))
    return result("sequence_bounds", output, segment_ids=source)
