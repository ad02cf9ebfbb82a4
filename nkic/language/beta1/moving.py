"""Loads, stores, copies and assignment of tiles, and argument conversion for Beta 1.

Without dtype= a result has the dtype of its operands; masked elements are not written. Sources:
nki.language.load, store, copy, static_cast, SDK 2.20 to 2.26.
"""

from __future__ import annotations

from typing import Any

from nkic.base.device import KernelError
from nkic.language.beta1 import access
from nkic.language.beta1.emit import (
    Part,
    RowBroadcast,
    can_start,
    count_write,
    covers,
    emit,
    fill_lazily,
    hide,
    is_hidden,
    new,
    note_part,
    operand,
    redirect,
    result,
    shaped_like,
    state,
    unchanged,
    written_part,
)
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
    predicate,
    reordered,
    startable,
)
from nkic.language.beta1.masks import bounding, boxes
from nkic.language.beta1.tiles import Blocks, Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.hosted import brief, plain
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active
from nkic.language.views import whole
from nkic.machine.dtypes import DType
from nkic.machine.targets import PARTITIONS, Buffer
from nkic.program.program import Instruction

Number = int | float


def tile(value: Any, what: str = "this") -> Tile:
    """Convert an argument to a tile without a mask. Raises `KernelError`."""
    if isinstance(value, Tile):
        if value._mask is None:
            return value
        raise KernelError(
            "bad-index",
            f"a mask in an index hides part of a tile of shape {value.shape}; only "
            "a matmul takes such a tile",
            help="pass the mask to the instruction, as mask=",
            argument=what,
        )
    if isinstance(value, NkiTensor):
        return Tile(value._access)
    if isinstance(value, Blocks):
        raise value._no_tile()
    text = f"`{what}` is {brief(value)}, but must be a tensor"
    raise KernelError("argument-kind", text, argument=what)


def kind(dtype: Any, default: DType) -> DType:
    return default if dtype is None else as_dtype(dtype)


def check_kind(dtype: Any, dst: Tile) -> None:
    """Refuse `dtype=` if it differs from dst, which decides the dtype of the results."""
    wanted = kind(dtype, dst.dtype)
    if wanted is not dst.dtype:
        raise KernelError(
            "argument-kind",
            f"the results go into dst, which is {dst.dtype.name}, and cannot be {wanted.name}",
            help=f"leave `dtype` out, or make dst of {wanted.name}",
            argument="dtype",
        )


def number(value: Any) -> Any:
    """Convert a NumPy number; other values are unchanged."""
    return plain(value)


def stdlib(name: str, *args: Any, **named: Any) -> Any:
    """Call a function of the standard library, which does not support masks."""
    returned = active().library(name)(*map(operand, args), **named)
    return Tile(returned._access) if isinstance(returned, NkiTensor) else returned


def across_partitions(row: Tile, count: int) -> Tile:
    row, body = in_sbuf(row), active().body
    first = len(body)
    rows: Tile = stdlib("_across_partitions", row, count)
    state().broadcasts.append(RowBroadcast(body, first, len(body)))
    return rows


def load(src: Any, *, mask: Any = None, dtype: Any = None, mode: Any = None) -> Tile:
    """Return a new tile in SBUF with the elements of a tensor in HBM.

    `mode` is the treatment of run-time indices out of bounds, as in nisa.dma_copy; undocumented for
    nl.load (assumed).
    """
    source = tile(src, "src")
    output = new(_tile_shape(source), kind(dtype, source.dtype))
    if len(source.shape) < 2:
        outside, source = source._outside, source.expand_dims(-1)
        source._outside = outside
    output._axes = source._axes
    region = extent_of(source, mask)
    check_inside(source, region)
    if region.empty:
        hide(output)
        return output
    if region.remaining is None:
        part = part_inside(source, region)
        return result("dma_copy", output, part=region.box, src=part, oob_mode=mode)
    copy_boxes(output, source, region, oob_mode=mode)
    note_part(output, Part(region.box, region.remaining, bare=True))
    return output


def _tile_shape(source: Tile) -> tuple[int, ...]:
    if source.shape[0] > PARTITIONS:
        raise KernelError(
            "too-many-partitions",
            f"a tile has at most {PARTITIONS} partitions; shape is {source.shape}",
            help=f"load at most {PARTITIONS} rows at a time, in a loop",
            argument="src",
            position=0,
        )
    return source.shape if len(source.shape) > 1 else (*source.shape, 1)


def copy_boxes(dst: Tile, src: Tile, region: Extent, **more: Any) -> None:
    """Record a transfer for each box of a mask that is not a box itself."""
    assert region.remaining is not None and region.box is not None
    for box in boxes(region.remaining, region.box):
        part = Extent(box)
        emit("dma_copy", Tile(cut(dst._access, part)), src=Tile(cut(src._access, part)), **more)


def store(dst: Any, value: Any, *, mask: Any = None, mode: Any = None) -> None:
    """Write a tile to a tensor in HBM. `mode` as in nl.load."""
    destination = tile(dst, "dst")
    stored = number(value)
    if is_hidden(stored):
        return
    if not isinstance(stored, NkiTensor):
        while len(destination.shape) < 2:  # one partition holds the number
            destination = destination.expand_dims(0)
        stored = full(destination.shape, stored, destination.dtype)
    source = in_sbuf(tile(stored, "value"))
    view = access.fitted(source._access, destination.shape)
    if view is None:
        text = f"a tile of shape {source.shape} cannot be stored to {destination.shape}"
        raise KernelError("operand-shape", text, help="index both so that their shapes are equal")
    region = extent(mask, destination.shape, axes_of(destination.shape, destination, source))
    if region.empty:
        return
    check_inside(destination, region)
    if source.shape == destination.shape:
        check_inside(source, region)
    if region.remaining is not None:
        copy_boxes(destination, Tile(view), region, oob_mode=mode)
    else:
        part = part_inside(destination, region)
        emit("dma_copy", part, src=Tile(cut(view, region)), oob_mode=mode)


def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return a new tile with the rows of a tensor in HBM as columns."""
    source = tile(src, "src")
    if len(source.shape) != 2:
        text = f"nl.load_transpose2d takes 2 dimensions, not {source.shape}"
        raise KernelError("bad-shape", text)
    rows, columns = source.shape
    output = new((columns, rows), source.dtype)
    output._axes = source._axes[::-1]
    region = extent_of(source, mask)
    part = part_inside(source, region)
    record("dma_transpose", output, reordered(region, (1, 0)), src=part)
    return output if dtype is None else static_cast(output, dtype)


def check_box(region: Extent, what: str) -> Extent:
    if region.remaining is None:
        return region
    raise KernelError(
        "bad-index",
        f"the mask of {what} does not bound single dimensions",
        help="mask rows and columns separately: (i_p < rows) & (i_f < columns)",
        argument="mask",
    )


def box_of(mask: Any, what: str, target: Tile, *sources: Tile) -> Extent:
    """Return the part of `target` that a mask leaves, which must be a box."""
    axes = axes_of(target.shape, target, *sources)
    return check_box(extent(mask, target.shape, axes), what)


def copy(src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = None) -> Tile:
    """Return a copy of a tile."""
    source = tile(src, "src")
    if not source._access.tensor.on_chip:
        return load(source, mask=mask, dtype=dtype)
    output, region = output_like(source, dtype, mask)
    return record(
        "tensor_copy", output, region, src=expanded(source, output.shape, region), engine=engine
    )


def output_for(
    shape: tuple[int, ...], dtype: DType, mask: Any, *tiles: Tile, buffer: Buffer = Buffer.SBUF
) -> tuple[Tile, Extent]:
    """Return a new tile for the result of tiles, and the part to write."""
    axes = axes_of(shape, *tiles)
    output = new(shape, dtype, buffer)
    output._axes = tuple(axes)
    region = startable(extent(mask, shape, axes), shape)
    if region.empty:
        hide(output)
    return output, region


def output_like(source: Tile, dtype: Any, mask: Any) -> tuple[Tile, Extent]:
    """Return a new tile of the shape of `source`, with its dtype by default."""
    return output_for(source.shape, kind(dtype, source.dtype), mask, source)


def record(row: str, output: Tile, region: Extent, **named: Any) -> Tile:
    """Record an instruction that writes a part of a new tile; without a part, there is none."""
    if region.empty:
        hide(output)
        return output
    return result(row, output, part=region.box, remaining=region.remaining, **named)


def static_cast(input_data: Any, dtype: Any) -> Any:
    """Return a copy with another dtype; numbers are unchanged."""
    if not isinstance(input_data, NkiTensor | Blocks):
        return input_data
    return copy(input_data, dtype=dtype)


def copied_to_hbm(value: NkiTensor) -> Tile:
    """Copy a tile that the kernel returns to HBM, where callers find it."""
    trace, at = active(), value._access.tensor.at
    start = len(trace.body)
    source = in_sbuf(tile(value))
    tensor = trace.declare(source.shape, source.dtype, Buffer.SHARED_HBM, source.name, at)
    emit("dma_copy", Tile(whole(tensor)), src=source)
    output = (item for item in trace.body[start:] if isinstance(item, Instruction))
    trace.body[start:] = [item._replace(at=at) for item in output]
    return Tile(whole(tensor))


IDENTITY = {"add": 0.0, "multiply": 1.0, "maximum": -3.4e38, "minimum": 3.4e38}


def fill_hidden(source: Tile, name: str, mask: Any) -> Tile:
    """Replace the elements that a mask hides by the identity of a reduction."""
    if name not in IDENTITY:
        check_box(extent_of(source, mask), f"a reduction with {name}")
    filled = full(source.shape, IDENTITY[name], source.dtype)
    filled._axes = source._axes
    assign(filled, copy(source, mask=mask))
    return filled


def in_sbuf(value: Tile) -> Tile:
    """Return the tile, copied to SBUF if it is in PSUM."""
    return copy(value) if value._access.tensor.buffer is Buffer.PSUM else value


def assign(target: Tile, value: Any) -> None:
    """`t[...] = value`."""
    value = value if isinstance(value, NkiTensor) else plain(value)
    if isinstance(value, int | float):
        _fill(target, value)
        return
    source = tile(value, "value")
    if is_hidden(source):
        hide(target)
        return
    if unchanged(source._access)[:4] == target._access[:4]:
        return  # `t[...] += value` has updated it already
    box, remaining, bare = written_part(source)
    region = Extent(box, remaining)
    check_inside(target, region)
    if redirect(source, target):
        return
    if region != ALL and source.shape != target.shape:  # the written part refers to this shape
        target = Tile(shaped_like(target._access, source.shape) or target._access)
    if remaining is not None and bounding(remaining, source.shape)[1] is None:
        bare = True
    _assign_region(target, _fitted(source, target, region), region, bare)


def _fitted(source: Tile, target: Tile, region: Extent) -> Tile:
    view = access.fitted(source._access, target.shape)
    if view is None:
        text = f"a tile of shape {source.shape} cannot be assigned to one of shape {target.shape}"
        raise KernelError("operand-shape", text, help=_shape_advice(source, target))
    if region != ALL and source.shape != target.shape:
        text = f"a part of a tile of shape {source.shape} cannot be assigned to {target.shape}"
        raise KernelError("operand-shape", text, help="index both so that their shapes are equal")
    return Tile(view)


def _assign_region(target: Tile, source: Tile, region: Extent, bare: bool) -> None:
    destination, part = part_inside(target, region), Tile(cut(source._access, region))
    on_chip = all(t._access.tensor.on_chip and can_start(t._access) for t in (destination, part))
    if region.remaining is None:
        emit("tensor_copy" if on_chip else "dma_copy", destination, src=part)
    elif on_chip and not bare and part.dtype is destination.dtype:  # the instruction has no cast
        chosen = part_inside(predicate(region.remaining, source.shape), region)
        emit("tensor_copy_predicated", destination, src=part, predicate=chosen)
    else:
        copy_boxes(target, source, region)


def _shape_advice(source: Tile, target: Tile) -> str:
    """Return a help text; a block declared without nl.par_dim is one partition."""
    whole = target._access.tensor.shape
    if target.shape != (1, *source.shape) or not target._access.tensor.on_chip:
        return "index both so that their shapes are equal"
    sizes = ", ".join(map(str, whole[2:]))
    return f"declare blocks with nl.par_dim: ({whole[0]}, nl.par_dim({whole[1]}), {sizes})"


def _fill(target: Tile, value: Number) -> None:
    check_inside(target, ALL)
    if target._access.tensor.on_chip and not can_start(target._access):
        emit("dma_copy", target, src=full(target.shape, value, target.dtype))
    elif target._access.tensor.buffer is Buffer.PSUM and covers(target._access):
        fill_lazily(target, value)
    elif target._access.tensor.on_chip:
        emit("memset", target, value=value)
    else:
        count_write(target._access)
        active().library("_fill")(operand(target), value)


def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    output = new(tuple(shape), as_dtype(dtype))
    return result("memset", output, value=fill_value)
