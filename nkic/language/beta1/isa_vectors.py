"""Element-wise instructions of the scalar and the vector engine in Beta 1's `nki.isa`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nkic.base.device import KernelError
from nkic.language import library
from nkic.language.beta1 import access
from nkic.language.beta1.access import permuted
from nkic.language.beta1.emit import Part, emit, hide, new, note_part, operand, result
from nkic.language.beta1.extents import (
    ALL,
    Extent,
    axes_of,
    check_inside,
    column,
    cut,
    expanded,
    extent,
    extent_of,
    part_inside,
    reordered,
    startable,
)
from nkic.language.beta1.functions import common_shape, readable_with
from nkic.language.beta1.masks import Box, bounding, depends_on, projected, rearranged, whole
from nkic.language.beta1.moving import (
    box_of,
    check_box,
    check_kind,
    copy,
    copy_boxes,
    fill_hidden,
    in_sbuf,
    kind,
    number,
    output_for,
    output_like,
    record,
    tile,
)
from nkic.language.beta1.operators import operator, operator_name
from nkic.language.beta1.tiles import Tile
from nkic.language.enums import engine, reduce_cmd
from nkic.language.hosted import whole_numbers
from nkic.language.tensor import NkiTensor
from nkic.machine import dtypes
from nkic.machine.instructions import ROWS
from nkic.machine.operands import AttributeKind, Operand
from nkic.machine.targets import PARTITIONS, Buffer

# ------------------------------------------------------------------------------------------------
# The tensor engine, copies and DMA of Beta 1's `nki.isa`: each returns the tile that it writes.
# These functions determine the shape, dtype and memory of the result, by the pages of SDK 2.20 to
# 2.26; the instructions themselves are the rows of the table. Parameters are those of Beta 1.

ANY = engine.unknown


def engine_choice(value: Any) -> Any:
    return None if value is engine.unknown else value


def nc_matmul(
    stationary: Any,
    moving: Any,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Any = (),
    tile_size: Any = (),
    mask: Any = None,
    perf_mode: Any = None,
) -> Tile:
    """Return stationary.T @ moving as a float32 tile in PSUM."""
    left, right = _side(stationary, "stationary"), _side(moving, "moving")
    shape: tuple[int, ...] = (prod(left.shape[1:]), *right.shape[1:])
    if _mode(perf_mode) == "double_row":  # each partition holds two rows of the contraction
        shape = (left.shape[-1], right.shape[-1])
    output = new(shape, right.dtype if is_transpose else dtypes.FLOAT32, Buffer.PSUM)
    if len(right.shape) < 2:
        raise KernelError("bad-shape", f"moving must have at least 2 dimensions, not {right.shape}")
    columns = left._axes[1:] if len(left.shape) == 2 else (frozenset[int](),)
    output._axes = (*columns[:1], *right._axes[1:])[: len(shape)]
    region, sides = _of_product(mask, left, right, output)
    if region.empty:
        hide(output)
        return output
    return record(
        "nc_matmul",
        output,
        region,
        stationary=sides[0],
        moving=sides[1],
        is_stationary_onezero=is_stationary_onezero,
        is_moving_onezero=is_moving_onezero,
        is_transpose=is_transpose,
        tile_position=tuple(tile_position) or None,
        tile_size=tuple(tile_size) or None,
        perf_mode=_mode(perf_mode),
    )


def _mode(value: Any) -> Any:
    """Convert a mode of the tensor engine, which is a string in Beta 1."""
    return {"double_row_gen3": "double_row"}.get(value, value) if isinstance(value, str) else value


def _side(value: Any, name: str) -> Tile:
    """Return a side of a product in SBUF. A mask in its index may hide a part of it."""
    if not isinstance(value, Tile) or value._mask is None:
        return in_sbuf(tile(value, name))
    result = in_sbuf(Tile(value._access, value._axes))
    result._mask = value._mask
    return result


def _of_product(
    mask: Any, left: Tile, right: Tile, output: Tile
) -> tuple[Extent, tuple[Tile, Tile]]:
    """Return the part of a product that masks leave, and the corresponding parts of its sides.

    A mask over the partitions of both sides removes terms of the sum, and so does one that hides
    partitions of a side.
    """
    flat = len(left.shape) == len(right.shape) == 2
    if not flat and left._mask is right._mask is None:
        for side in (left, right) if mask is None else ():
            check_inside(side, ALL)
        return extent_of(output, mask), (left, right)
    if not flat:
        text = f"a mask hides part of a side of {left.shape} times {right.shape}"
        raise KernelError("bad-index", text, help="index both sides to two dimensions")
    shape = (left.shape[0], left.shape[1], right.shape[1])
    axes = (left._axes[0] | right._axes[0], left._axes[1], right._axes[1])
    region = extent(mask, shape, axes, product=True)
    if region.remaining is not None and depends_on(region.remaining, 0):
        region = check_box(region, "nc_matmul, where it removes terms of the sum,")
    for side, dims in ((left, (0, 1)), (right, (0, 2))):
        region = _within_side(region, side, dims, shape)
    if region.empty or region.box is None:
        sides = part_inside(left, region), part_inside(right, region)
        return region, sides
    (k, m, n), (sk, sm, sn) = region.box
    sides = (
        part_inside(left, region._replace(box=Box((k, m), (sk, sm)))),
        part_inside(right, region._replace(box=Box((k, n), (sk, sn)))),
    )
    remaining = None if region.remaining is None else rearranged(region.remaining, (1, 2))
    return Extent(Box((m, n), (sm, sn)), remaining), sides


def _within_side(region: Extent, side: Tile, dims: Sequence[int], shape: Sequence[int]) -> Extent:
    """Restrict the part of a product to the part of one side that its mask leaves."""
    if side._mask is None or region.empty:
        return region
    box, remaining = bounding(side._mask, side.shape)
    if box is None:
        return Extent(empty=True)
    check_box(Extent(box, remaining), "a tile that a matmul takes")
    starts, sizes = map(list, region.box or whole(tuple(shape)))
    for at, start, size in zip(dims, *box, strict=True):
        end = min(starts[at] + sizes[at], start + size)
        starts[at] = max(starts[at], start)
        sizes[at] = end - starts[at]
    if min(sizes) < 1:
        return Extent(empty=True)
    return region._replace(box=Box(tuple(starts), tuple(sizes)))


def nc_transpose(data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = ANY) -> Tile:
    """Exchange partitions and free elements: in PSUM, or in SBUF on the vector engine."""
    source = tile(data, "data")
    flat = source if len(source.shape) == 2 else source.reshape(source.shape[0], -1)
    rows, columns = flat.shape
    on_vector = engine is type(ANY).vector
    if max(rows, columns) > PARTITIONS:
        raise KernelError(
            "too-many-partitions",
            f"nc_transpose exchanges {rows} partitions and {columns} columns; there are at most "
            f"{PARTITIONS} of both",
            help=f"transpose parts of at most {PARTITIONS} columns",
            argument="data",
            position=0,
        )
    buffer = Buffer.SBUF if on_vector else Buffer.PSUM
    output = new((columns, rows), kind(dtype, source.dtype), buffer)
    output._axes = flat._axes[::-1]
    region = extent_of(flat, mask)
    if region.empty:
        hide(output)
        return output
    part = part_inside(flat, region)
    return record(
        "nc_transpose",
        output,
        reordered(region, (1, 0)),
        data=part if on_vector else in_sbuf(part),
        engine=engine_choice(engine),
    )


def tensor_copy(src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = ANY) -> Tile:
    """Return a copy of a tile."""
    return copy(tile(src, "src"), mask=mask, dtype=dtype, engine=engine_choice(engine))


tensor_copy_dynamic_src = tensor_copy


def tensor_copy_dynamic_dst(
    *, dst: Any, src: Any, mask: Any = None, dtype: Any = None, engine: Any = ANY
) -> None:
    """Copy to an offset known at run time."""
    target, source = tile(dst, "dst"), tile(src, "src")
    check_kind(dtype, target)
    region = box_of(mask, "the copy", target, source)
    if not region.empty:
        dst, src = part_inside(target, region), expanded(source, target.shape, region)
        emit("tensor_copy", dst, src=src, engine=engine_choice(engine))


def nc_stream_shuffle(
    src: Any, dst: Any, shuffle_mask: Any, *, dtype: Any = None, mask: Any = None
) -> None:
    """Permute partitions within each quadrant of 32."""
    target, source = tile(dst, "dst"), tile(src, "src")
    check_kind(dtype, target)
    region = box_of(mask, "the shuffle", target, source)
    if not region.empty:
        part = part_inside(target, region)
        rows = source if source.shape[0] == 1 else expanded(source, target.shape, region)
        emit("nc_stream_shuffle", part, src=rows, shuffle_mask=list(shuffle_mask))


def dma_copy(
    *,
    dst: Any,
    src: Any,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = None,
    dge_mode: Any = None,
) -> None:
    """dst = src, or with `dst_rmw_op`, dst = dst op src."""
    target, source = tile(dst, "dst"), tile(src, "src")
    view = access.broadcast(source._access, target.shape) or source._access
    if view.shape != target.shape:
        view = Tile(view).reshape(target.shape)._access
    region = extent(mask, target.shape, axes_of(target.shape, target, source))
    if region.empty:
        return
    if dst_rmw_op is not None:
        _combined(target, Tile(view), dst_rmw_op, region, oob_mode)
    elif region.remaining is not None:
        copy_boxes(target, Tile(view), region, oob_mode=oob_mode, dge_mode=dge_mode)
    else:
        part = part_inside(target, region)
        emit("dma_copy", part, src=Tile(cut(view, region)), oob_mode=oob_mode, dge_mode=dge_mode)


def _combined(target: Tile, source: Tile, op: Any, region: Extent, oob_mode: Any = None) -> None:
    """target = target op source, by DMA."""
    region = check_box(region, "a transfer that combines")
    dst, src = part_inside(target, region), part_inside(source, region)
    srcs = [operand(src), operand(dst)]
    emit("dma_compute", dst, srcs=srcs, reduce_op=operator(op), oob_mode=oob_mode)


def dma_transpose(src: Any, *, axes: Any = None, mask: Any = None, dtype: Any = None) -> Tile:
    """Return a new tile with the dimensions of a tensor reversed."""
    source = tile(src, "src")
    rank = len(source.shape)
    order = tuple(axes) if axes is not None else (3, 1, 2, 0) if rank == 4 else range(rank)[::-1]
    shape = tuple(source.shape[n] for n in order)
    output = new(shape, source.dtype)
    region = extent_of(source, mask)
    if region.empty:
        hide(output)
        return output
    part = part_inside(source, region)
    named: dict[str, Any] = {} if axes is None else {"axes": tuple(axes)}
    transposed = record("dma_transpose", output, reordered(region, order), src=part, **named)
    return transposed if dtype is None else copy(transposed, dtype=dtype)


# --------------------------------------------------------------------------------------------------

_OPERATORS = (AttributeKind.ALU, AttributeKind.ACTIVATION)


def elementwise(row: str, data: Any, mask: Any, dtype: Any, **named: Any) -> Tile:
    """Record an instruction that computes each element of a new tile from that of `data`.

    `named` are the other arguments of the row, as the kernel passed them.
    """
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    part = part_inside(source, region)
    return record(row, output, region, data=part, **converted(row, region, **named))


def converted(row: str, region: Extent, **named: Any) -> dict[str, Any]:
    """Convert arguments by the row that takes them.

    Operators become the table's; an operand with one element per partition is cut to `region`.
    """
    row_ = ROWS[row]
    operators = {attribute.name for attribute in row_.attributes if attribute.kind in _OPERATORS}
    columns = {operand.name: operand for operand in row_.operands if operand.column}
    result = named.copy()
    for name, value in named.items():
        if name in operators:
            result[name] = operator(value, name)
        elif name in columns and value is not None:
            result[name] = _column(columns[name], value, region)
    return result


def _column(operand: Operand, value: Any, region: Extent) -> Any:
    """Convert an operand with one element per partition, or a number if the row allows it."""
    value = number(value)
    if operand.number and not isinstance(value, NkiTensor):
        return value
    return column(tile(value, operand.name), region)


def activation(
    op: Any,
    data: Any,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = reduce_cmd.idle,
    mask: Any = None,
    dtype: Any = None,
) -> Tile:
    """op(data x scale + bias)."""
    sums = {"reduce_op": reduce_op, "reduce_res": reduce_res, "reduce_cmd": reduce_cmd}
    return elementwise("activation", data, mask, dtype, op=op, bias=bias, scale=scale, **sums)


def activation_reduce(
    op: Any,
    data: Any,
    *,
    reduce_op: Any,
    reduce_res: Any,
    bias: Any = None,
    scale: Any = 1.0,
    mask: Any = None,
    dtype: Any = None,
) -> Tile:
    """op(data x scale + bias), and the reduction of the results in `reduce_res`."""
    sums = {"reduce_op": reduce_op, "reduce_res": tile(reduce_res, "reduce_res")}
    return elementwise(
        "activation_reduce", data, mask, dtype, op=op, bias=bias, scale=scale, **sums
    )


def tensor_tensor(
    data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = ANY
) -> Tile:
    """data1 op data2."""
    left, right = tile(data1, "data1"), tile(data2, "data2")
    shape = common_shape(left, right)
    default = library.promoted(left.dtype, right.dtype)
    output, region = output_for(shape, kind(dtype, default), mask, left, right)
    if region.empty:
        return output
    alu = operator(op)
    assert alu is not None
    if alu.name == "power":
        left, right = in_sbuf(left), in_sbuf(right)
    return record(
        "tensor_tensor",
        output,
        region,
        data1=expanded(left, shape, region),
        data2=expanded(readable_with(left, right), shape, region),
        op=alu,
        engine=engine_choice(engine),
    )


def tensor_scalar(
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = ANY,
) -> Tile:
    """(data op0 operand0) op1 operand1, each operand a number or one per partition."""
    first = {"op0": op0, "operand0": operand0, "reverse0": reverse0}
    second = {"op1": op1, "operand1": operand1, "reverse1": reverse1}
    choice = engine_choice(engine)
    return elementwise("tensor_scalar", data, mask, dtype, **first, **second, engine=choice)


def scalar_tensor_tensor(
    *,
    data: Any,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tile:
    """(data op0 operand0) op1 operand1: operand0 a number or column, operand1 a tile."""
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "scalar_tensor_tensor",
        output,
        region,
        data=part_inside(source, region),
        **converted("scalar_tensor_tensor", region, op0=op0, operand0=operand0, op1=op1),
        operand1=expanded(readable_with(source, tile(operand1, "operand1")), output.shape, region),
        reverse0=reverse0,
        reverse1=reverse1,
    )


def tensor_scalar_reduce(
    *,
    data: Any,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Any,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tile:
    """data op0 operand0, and each partition reduced by reduce_op in `reduce_res`."""
    first = {"op0": op0, "operand0": operand0, "reverse0": reverse0}
    sums = {"reduce_op": reduce_op, "reduce_res": tile(reduce_res, "reduce_res")}
    return elementwise("tensor_scalar_reduce", data, mask, dtype, **first, **sums)


def tensor_tensor_scan(
    data0: Any,
    data1: Any,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tile:
    """result[i] = (data0[i] op0 result[i - 1]) op1 data1[i], `initial` before the first."""
    left, right = tile(data0, "data0"), tile(data1, "data1")
    shape = common_shape(left, right)
    output, region = output_for(
        shape, kind(dtype, library.promoted(left.dtype, right.dtype)), mask, left, right
    )
    if region.empty:
        return output
    return record(
        "tensor_tensor_scan",
        output,
        region,
        data0=expanded(left, shape, region),
        data1=expanded(right, shape, region),
        **converted("tensor_tensor_scan", region, initial=initial, op0=op0, op1=op1),
        reverse0=reverse0,
        reverse1=reverse1,
    )


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """1 / data."""
    return elementwise("reciprocal", data, mask, dtype)


def dropout(data: Any, prob: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return data with elements replaced by 0 at random."""
    return elementwise("dropout", data, mask, dtype, prob=prob)


# ---- Reductions, statistics and searches of Beta 1's `nki.isa` ----------------------------------


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
