"""Reductions, statistics and searches of Beta 1's `nki.isa`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.beta1.access import permuted
from nkic.language.beta1.emit import Part, hide, new, note_part, result
from nkic.language.beta1.extents import Extent, column, extent_of, part_inside, reordered, startable
from nkic.language.beta1.masks import Box, projected
from nkic.language.beta1.moving import (
    check_box,
    fill_hidden,
    in_sbuf,
    kind,
    number,
    output_like,
    record,
    tile,
)
from nkic.language.beta1.operators import operator, operator_name
from nkic.language.beta1.tiles import Tile
from nkic.language.hosted import whole_numbers
from nkic.machine import dtypes
from nkic.machine.instructions import ROWS


def bn_stats(data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return statistics of each partition."""
    return _per_partition("bn_stats", data, 6, mask, dtype)


def bn_aggr(data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return mean and variance computed from statistics."""
    return _per_partition("bn_aggr", data, 2, mask, dtype)


def max8(*, src: Any, mask: Any = None, dtype: Any = None) -> Tile:
    """Return the 8 largest elements of each partition."""
    return _per_partition("max8", src, 8, mask, dtype)


def nc_find_index8(*, data: Any, vals: Any, mask: Any = None, dtype: Any = None) -> Tile:
    """Return the positions of 8 values in each partition."""
    positions = kind(dtype, dtypes.UINT32)
    return _per_partition("nc_find_index8", data, 8, mask, positions, vals=vals)


_SEARCHES = ("max8", "nc_find_index8")  # the least number hides an element from them


def _per_partition(row: str, data: Any, count: int, mask: Any, dtype: Any, **columns: Any) -> Tile:
    """Record an instruction that returns `count` numbers per partition of a tile.

    `columns` are its other operands, with one row per partition.
    """
    name = ROWS[row].operands[1].name
    source = tile(data, name)
    output = new((source.shape[0], count), kind(dtype, source.dtype))
    if row in _SEARCHES:
        source, region = _visible(source, mask)
    else:
        region = check_box(extent_of(source, mask), row)
    if region.empty:
        hide(output)
        return output
    operands: dict[str, Any] = {name: part_inside(source, region)}
    operands |= {other: column(tile(value, other), region) for other, value in columns.items()}
    return result(row, output, part=rows_of(region, count), **operands)


def _visible(source: Tile, mask: Any) -> tuple[Tile, Extent]:
    """Return the tile and extent that a masked search reads, with columns counted from 0.

    Unless the mask is an upper bound of columns, hidden elements are replaced by the least number.
    """
    region = extent_of(source, mask)
    box = region.box
    if box is None or (region.remaining is None and not any(box.starts[1:])):
        return source, region
    rows = Box((box.starts[0], *(0 for _ in box.starts[1:])), (box.sizes[0], *source.shape[1:]))
    return fill_hidden(source, "maximum", mask), Extent(rows)


def rows_of(region: Extent, *counts: int) -> Box | None:
    """Return the partitions of a box, with `counts` elements in each."""
    if region.box is None:
        return None
    return Box((region.box.starts[0], *(0 for _ in counts)), (region.box.sizes[0], *counts))


def nc_match_replace8(
    *,
    data: Any,
    vals: Any,
    imm: Any,
    dst_idx: Any = None,
    mask: Any = None,
    dtype: Any = None,
) -> Tile:
    """Return data with the first occurrences of 8 values replaced."""
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    if region.remaining is not None:
        source = fill_hidden(source, "maximum", mask)
    return record(
        "nc_match_replace8",
        output,
        region,
        data=part_inside(source, region),
        vals=column(tile(vals, "vals"), region),
        imm=number(imm),
        dst_idx=None if dst_idx is None else column(tile(dst_idx), region),
    )


def tensor_reduce(
    op: Any,
    data: Any,
    axis: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
) -> Tile:
    """Reduce data by op over free dimensions, not necessarily the last ones."""
    source = tile(data, "data")
    axes = reduced_axes(axis, source)
    remaining_axes = [n for n in range(len(source.shape)) if n not in axes]
    order = [*remaining_axes, *axes]
    shape = tuple(1 if n in axes else size for n, size in enumerate(source.shape))
    output = new(shape, kind(dtype, source.dtype))
    output._axes = tuple(
        frozenset() if n in axes else dim_axes for n, dim_axes in enumerate(source._axes)
    )
    region = startable(extent_of(source, mask), source.shape)
    if region.empty:
        hide(output)
    else:
        source, region, written = _unmasked(op, source, region, mask, axes)
        view = permuted(part_inside(source, region)._access, order)
        record(
            "tensor_reduce",
            output,
            written,
            op=operator(op),
            data=Tile(view),
            axis=tuple(range(len(remaining_axes), len(order))),
            negate=negate,
            keepdims=keepdims if len(axes) == 1 and axes[0] == len(order) - 1 else None,
        )
    return output if keepdims else _without(output, axes)


def _unmasked(
    op: Any, source: Tile, region: Extent, mask: Any, axes: Sequence[int]
) -> tuple[Tile, Extent, Extent]:
    """Return a tile and the part of it to reduce along `axes`, and the part of the result to write.

    Elements that the mask hides within that part are replaced by the identity of the reduction.
    """
    box, remaining = region.box, None
    if box is None:
        return source, region, region
    if region.remaining is not None:
        source = fill_hidden(source, operator_name(op), mask)
        remaining = projected(region.remaining, box, axes)
    written = Box(
        tuple(0 if n in axes else at for n, at in enumerate(box.starts)),
        tuple(1 if n in axes else size for n, size in enumerate(box.sizes)),
    )
    return source, Extent(box), Extent(written, remaining)


def reduced_axes(axis: Any, source: Tile) -> tuple[int, ...]:
    rank = len(source.shape)
    axes = sorted({a + rank if a < 0 else a for a in whole_numbers(axis, "axis")})
    if not axes or axes[-1] >= rank:
        raise KernelError("bad-dimension", f"axis {axis} of a tile of shape {source.shape}")
    if axes[0] == 0:
        raise KernelError(
            "reduction-axis",
            f"axis 0 of {source.shape} is the partition dimension, over which this instruction "
            "cannot reduce",
            help="transpose first, or use nisa.tensor_partition_reduce or a matmul with ones",
        )
    return tuple(axes)


def _without(output: Tile, axes: Sequence[int]) -> Tile:
    """Drop the reduced dimensions; a tile keeps at least two."""
    view, order = output._access, list(range(len(output.shape)))
    for axis in reversed(axes):
        if len(order) > 2:
            order.remove(axis)
    if len(order) == len(output.shape):
        return output
    squeezed = Tile(permuted(view, order), tuple(output._axes[n] for n in order))
    producer = output._written_by
    if producer is not None:
        box, remaining, _ = reordered(Extent(producer.part, producer.remaining), order)
        squeezed._written_by = producer._replace(part=box, remaining=remaining)
        note_part(squeezed, Part(box, remaining))
    return squeezed


def tensor_partition_reduce(op: Any, data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Reduce all partitions to one."""
    source = in_sbuf(tile(data, "data"))
    output = new((1, *source.shape[1:]), kind(dtype, source.dtype))
    region = extent_of(source, mask)
    if region.empty:
        hide(output)
        return output
    source, region, written = _unmasked(op, source, region, mask, (0,))
    part = part_inside(source, region)
    return record("tensor_partition_reduce", output, written, op=operator(op), data=part)
