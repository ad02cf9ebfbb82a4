"""The part of a tile that a masked instruction works on, and that of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.language.beta1.access import broadcast, part_of
from nkic.language.beta1.emit import emit, new, shaped_like, state
from nkic.language.beta1.indices import NO_AXES, Dim, Index
from nkic.language.beta1.masks import (
    All,
    Box,
    Compared,
    Mask,
    as_mask,
    bounding,
    conjuncts,
    elements,
    range_over,
    rearranged,
)
from nkic.language.beta1.tiles import Tile
from nkic.language.creation import ConstantArray, shared_constant
from nkic.language.enums import OPERATORS
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.machine.targets import Buffer
from nkic.machine.tiles import start_partitions
from nkic.program.program import View

Shape = tuple[int, ...]
Axes = Sequence[frozenset[int]]


class Extent(NamedTuple):
    """The part of a tile that an instruction works on; all of it if `box` is None.

    `remaining` is the mask's condition within that part; `empty` means that there is none.
    """

    box: Box | None = None
    remaining: Mask | None = None
    empty: bool = False


ALL = Extent()


def extent(mask: Any, shape: Shape, axes: Axes, product: bool = False) -> Extent:
    """Return the part that a mask leaves of a tile, or of a product; `axes` as in `Indexed`."""
    value = as_mask(mask)
    if value is None:
        return ALL
    if value is False:
        return Extent(empty=True)
    assert isinstance(value, Mask)
    box, remaining = bounding(value.placed(axes, shape, product), shape)
    if box is None:
        return Extent(empty=True)
    whole = box.sizes == shape
    return Extent(None if whole and remaining is None else box, remaining)


def extent_of(tile: Tile, mask: Any) -> Extent:
    return extent(mask, tile.shape, tile._axes)


def startable(region: Extent, shape: Shape) -> Extent:
    """Extend a part of a new tile to a partition at which an engine can start.

    A mask excludes the added partitions when the result is assigned.
    """
    if region.box is None or region.box.starts[0] in start_partitions(region.box.sizes[0]):
        return region
    (start, *starts), (size, *sizes) = region.box
    end = start + size
    first = max(n for n in range(start + 1) if n in start_partitions(end - n))
    dims = tuple(Dim(n, int(not axis)) for axis, n in enumerate(shape))
    bound = Compared(Index(-start, dims), ">=")
    remaining = bound if region.remaining is None else All(bound, region.remaining)
    return Extent(Box((first, *starts), (end - first, *sizes)), remaining)


def check_inside(tile: Tile, region: Extent) -> None:
    """Raise `KernelError` if the accessed part exceeds a dimension of the tensor.

    A mask that is not a box is not checked: its remaining condition may exclude what is outside.
    """
    if not tile._outside or region.empty or region.remaining is not None:
        return
    box = region.box or Box((0,) * len(tile.shape), tile.shape)
    for index, size, axis in tile._outside:
        reach = _reach(index, box, region)
        if reach is None:
            continue
        low, high = reach
        if low < 0 or high >= size:
            shape = tile._access.tensor.shape
            values = f"is {low}" if low == high else f"goes from {low} to {high}"
            fixed = f"indices of it go from 0 to {size - 1}"
            raise KernelError(
                "index-out-of-bounds",
                f"the index of dimension {axis} {values}, which has {size} elements: the shape of "
                f"`{tile._access.tensor.name}` is {shape}",
                help=fixed if low == high else f"mask the elements outside: mask=(index < {size})",
            )


def part_inside(tile: Tile, region: Extent) -> Tile:
    """Return the part of a tile that an instruction works on, checked to be inside the tensor."""
    check_inside(tile, region)
    return Tile(cut(tile._access, region))


def _reach(index: Index, box: Box, region: Extent) -> tuple[int, int] | None:
    """Return the range of an index within a part of a tile.

    None if the mask refers to dimensions that the tile had before it was reshaped.
    """
    if len(index.dims) == len(box.sizes):
        return range_over(index, box)
    return index.bounds if index.is_fixed or region.box is None else None


def reordered(region: Extent, order: Sequence[int]) -> Extent:
    """Return the part after a permutation of the tile's dimensions."""
    if region.box is None:
        return region
    starts, sizes = (tuple(part[n] for n in order) for part in region.box)
    remaining = None if region.remaining is None else rearranged(region.remaining, order)
    return Extent(Box(starts, sizes), remaining)


def axes_of(shape: Shape, *tiles: Tile) -> list[frozenset[int]]:
    """Return the `arange` calls along each dimension of the tiles' broadcast shape."""
    result = [NO_AXES] * len(shape)
    for tile in tiles:
        shift = len(shape) - len(tile._axes)
        for dim, axes in enumerate(tile._axes):
            if shift + dim >= 0 and tile.shape[dim] == shape[shift + dim]:
                result[shift + dim] |= axes
    return result


def expanded(tile: Tile, shape: Shape, region: Extent = ALL) -> Tile:
    """Broadcast a tile to a shape and return the part that an instruction works on."""
    check_inside(tile, repeated_part(tile.shape, shape, region))
    view = broadcast(tile._access, shape) or shaped_like(tile._access, shape)
    if view is None:
        raise KernelError(
            "operand-shape",
            f"{tile.shape} cannot be broadcast with {shape}: sizes must be equal, or 1",
            help="reshape one of them, or index it with None for a new dimension",
        )
    return Tile(cut(view, region))


def repeated_part(shape: Shape, whole: Shape, region: Extent) -> Extent:
    """Return the part of a tile that is read if its broadcast is then restricted to `region`."""
    if region.box is None or len(shape) != len(whole):
        return region
    starts = tuple(at if n > 1 else 0 for at, n in zip(region.box.starts, shape, strict=True))
    sizes = tuple(min(at, n) for at, n in zip(region.box.sizes, shape, strict=True))
    return region._replace(box=Box(starts, sizes))


def cut(view: View, region: Extent) -> View:
    """Return the part of a view that an instruction works on."""
    return view if region.box is None else part_of(view, region.box.starts, region.box.sizes)


def _of_column(shape: Shape, region: Extent) -> Extent:
    """Return the part of a tile with one element per partition that corresponds to `region`."""
    if region.box is None or shape[0] == 1:
        return region._replace(box=None)
    starts = (region.box.starts[0], *(0,) * (len(shape) - 1))
    return region._replace(box=Box(starts, (region.box.sizes[0], *shape[1:])))


def column(value: Tile, region: Extent) -> Tile:
    """Return the part of an operand with one element per partition."""
    part = _of_column(value.shape, region)
    check_inside(value, part)
    return value if part.box is None else Tile(cut(value._access, part))


# ---- predicates ----------------------------------------------------------------------------------

_SELECTS = {">=": "greater_equal", "==": "equal", "!=": "not_equal"}


def predicate(mask: Mask, shape: Shape) -> Tile:
    """Return a tile of ones where a placed mask is true, else zeros; memoised per core."""
    key = (repr(mask), shape, len(active().bodies))
    tile = state().predicates.get(key)
    if tile is None:
        tile = state().predicates[key] = _predicate(mask, shape)
    return tile


def _predicate(mask: Mask, shape: Shape) -> Tile:
    parts = conjuncts(mask)
    conditions = [part for part in parts if isinstance(part, Compared)]
    if len(conditions) < len(parts):
        return _constant(mask, shape)
    result = new(shape, dtypes.UINT8)
    emit("memset", result, value=1)
    for condition in conditions:
        chosen = new(shape, dtypes.UINT8)
        select(chosen, condition, result, 0)
        result = chosen
    return result


def select(dst: Tile, condition: Compared, source: Tile, other: Any) -> None:
    """Record an affine_select with one condition on a tile's positions."""
    dims = condition.index.dims
    sizes = dst.shape[1:]
    emit(
        "affine_select",
        dst,
        pattern=[[d.step, n] for d, n in zip(dims[1:], sizes, strict=True)] or [[0, 1]],
        channel_multiplier=dims[0].step,
        on_true_tile=source,
        on_false_value=other,
        cmp_op=OPERATORS[_SELECTS[condition.symbol]],
        offset=condition.index.start,
    )


def _constant(mask: Mask, shape: Shape) -> Tile:
    data = bytes(elements(mask, shape))
    source = shared_constant(ConstantArray(dtypes.UINT8, shape, data))
    result = new(shape, dtypes.UINT8, Buffer.SBUF)
    emit("dma_copy", result, src=source)
    return result
