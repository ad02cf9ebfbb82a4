"""The tensor engine, copies and DMA of Beta 1's `nki.isa`: each returns the tile that it writes.

These functions determine the shape, dtype and memory of the result, by the pages of SDK 2.20 to
2.26; the instructions themselves are the rows of the table. Parameters are those of Beta 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.beta1 import access
from nkic.language.beta1.emit import emit, hide, new, operand
from nkic.language.beta1.extents import (
    ALL,
    Extent,
    axes_of,
    check_inside,
    cut,
    expanded,
    extent,
    extent_of,
    part_inside,
    reordered,
)
from nkic.language.beta1.masks import Box, bounding, depends_on, rearranged, whole
from nkic.language.beta1.moving import (
    box_of,
    check_box,
    check_kind,
    copy,
    copy_boxes,
    in_sbuf,
    kind,
    record,
    tile,
)
from nkic.language.beta1.operators import operator
from nkic.language.beta1.tiles import Tile
from nkic.language.enums import engine
from nkic.machine import dtypes
from nkic.machine.memory import PARTITIONS, Buffer

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
