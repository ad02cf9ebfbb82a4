"""The instructions of Beta 1's `nki.isa`: each returns the tile that it writes.

Most are rows of the instruction table whose result has the shape of an operand: `_FORMS` says what
a call looks like, and three functions record them. The others choose a layout, or several
instructions. Sources: the pages of SDK 2.20 to 2.26. Parameters are those of Beta 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from math import prod
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.language import library
from nkic.language.beta1 import access
from nkic.language.beta1.access import permuted
from nkic.language.beta1.emit import Part, Producer, emit, hide, new, note_part, operand, result
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
    select,
    startable,
)
from nkic.language.beta1.functions import common_shape, readable_with
from nkic.language.beta1.indices import ONE, Index, as_index
from nkic.language.beta1.masks import (
    Box,
    Compared,
    Mask,
    bounding,
    conjuncts,
    depends_on,
    projected,
    rearranged,
    whole,
)
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
from nkic.language.beta1.operators import check, fitting, operator, operator_name
from nkic.language.beta1.tiles import Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import OPERATORS, engine, reduce_cmd
from nkic.language.hosted import whole_number, whole_numbers
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.instructions import ROWS
from nkic.machine.operands import AttributeKind, Operand
from nkic.machine.targets import PARTITIONS, Buffer

ANY = engine.unknown


def _choice(value: Any) -> Any:
    return None if value is ANY else value


# ---- Instructions that are rows in another form --------------------------------------------------

Arguments = Mapping[str, Any]
_SEARCHES = ("max8", "nc_find_index8", "nc_match_replace8")  # the least number hides from them


class _Form(NamedTuple):
    """The call of a row in Beta 1, and the function that records it."""

    parameters: str
    doc: str
    record: Callable[[str, Arguments], Any]


def _elementwise(row: str, given: Arguments, *tiles: str, beside: str = "") -> Tile:
    """Record an instruction that computes each element of a new tile from those of `tiles`.

    `beside` names a tile that one instruction must be able to read with the first.
    """
    sources = {name: tile(given[name], name) for name in tiles}
    first, last = sources[tiles[0]], sources[tiles[-1]]
    shape = first.shape if first is last else common_shape(first.shape, last.shape)
    dtype = kind(given["dtype"], library.promoted(first.dtype, last.dtype))
    output, region = output_for(shape, dtype, given["mask"], *sources.values())
    if region.empty:
        return output
    if row in _SEARCHES and region.remaining is not None:
        sources[tiles[0]] = fill_hidden(first, "maximum", given["mask"])
    if beside in tiles and operator(given["op"]) is OPERATORS["power"]:
        sources = {name: in_sbuf(source) for name, source in sources.items()}
    if beside:
        other = sources[beside] if beside in sources else tile(given[beside], beside)
        sources[beside] = readable_with(sources[tiles[0]], other)
    return record(row, output, region, **_converted(row, given, sources, shape, region))


def _into_dst(row: str, given: Arguments, what: str, chosen: str, beside: str = "") -> None:
    """Record an instruction that writes the tile `dst`, where a mask leaves it.

    The operand `chosen`, by whose indices a mask may be written, and `beside` have its shape.
    """
    target, source = tile(given["dst"], "dst"), tile(given[chosen], chosen)
    if chosen == "predicate" and source.dtype is dtypes.BOOL:
        source = source.view(dtypes.UINT8)
    check_kind(given["dtype"], target)
    region = box_of(given["mask"], what, target, source)
    if region.empty:
        return
    sources = {chosen: source}
    if isinstance(given.get(beside), NkiTensor):
        sources[beside] = tile(given[beside], beside)
    named = _converted(row, given, sources, target.shape, region)
    emit(row, part_inside(target, region), **named)


def _per_partition(row: str, given: Arguments, count: int, default: DType | None = None) -> Tile:
    """Record an instruction that returns `count` numbers per partition of its first operand."""
    name = ROWS[row].operands[1].name
    source = tile(given[name], name)
    output = new((source.shape[0], count), kind(given["dtype"], default or source.dtype))
    if row in _SEARCHES:
        source, region = _visible(source, given["mask"])
    else:
        region = check_box(extent_of(source, given["mask"]), row)
    named = _converted(row, given, {name: source}, source.shape, region)
    if region.box is not None:
        rows = Box((region.box.starts[0], 0), (region.box.sizes[0], count))
        region = region._replace(box=rows)
    return record(row, output, region, **named)


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


def _converted(
    row: str, given: Arguments, sources: Mapping[str, Tile], shape: tuple[int, ...], region: Extent
) -> dict[str, Any]:
    """Convert the arguments of a call by the row that takes them.

    `sources` have the given shape, or are broadcast to it; any other operand has one element, or
    row, per partition, or is a number. All are restricted to `region`.
    """
    named: dict[str, Any] = {}
    for spec in ROWS[row].operands[1:]:  # without dst
        if spec.name in sources:
            named[spec.name] = expanded(sources[spec.name], shape, region)
        elif given.get(spec.name) is not None:
            named[spec.name] = _column(spec, given[spec.name], region)
    for attribute in ROWS[row].attributes:
        if attribute.name in given:
            value = given[attribute.name]
            named[attribute.name] = (
                operator(value, attribute.name) if attribute.kind in _OPERATORS else value
            )
    if "engine" in given:
        named["engine"] = _choice(given["engine"])
    if "range_start" in named:  # counts from the first column that the instruction reads
        columns = region.box.starts[-1] if region.box else 0
        named["range_start"] = number(named["range_start"]) + columns
    return named


_OPERATORS = (AttributeKind.ALU, AttributeKind.ACTIVATION)


def _column(spec: Operand, value: Any, region: Extent) -> Any:
    value = number(value)
    if spec.number and not isinstance(value, NkiTensor):
        return value
    return column(tile(value, spec.name), region)


def _of_data(row: str, given: Arguments) -> Tile:
    return _elementwise(row, given, "data")


# A star stands before the parameters that are given by name.
_FORMS = {
    "activation": _Form(
        "op data * bias=None scale=1.0 reduce_op=None reduce_res=None reduce_cmd=idle mask=None "
        "dtype=None",
        "op(data x scale + bias).",
        _of_data,
    ),
    "activation_reduce": _Form(
        "op data * reduce_op reduce_res bias=None scale=1.0 mask=None dtype=None",
        "op(data x scale + bias), and the reduction of the results in `reduce_res`.",
        _of_data,
    ),
    "tensor_tensor": _Form(
        "data1 data2 op * dtype=None mask=None engine=unknown",
        "data1 op data2.",
        lambda row, given: _elementwise(row, given, "data1", "data2", beside="data2"),
    ),
    "tensor_scalar": _Form(
        "data op0 operand0 reverse0=False op1=None operand1=None reverse1=False * dtype=None "
        "mask=None engine=unknown",
        "(data op0 operand0) op1 operand1, each operand a number or one per partition.",
        _of_data,
    ),
    "scalar_tensor_tensor": _Form(
        "* data op0 operand0 op1 operand1 reverse0=False reverse1=False dtype=None mask=None",
        "(data op0 operand0) op1 operand1: operand0 a number or column, operand1 a tile.",
        lambda row, given: _elementwise(row, given, "data", beside="operand1"),
    ),
    "tensor_scalar_reduce": _Form(
        "* data op0 operand0 reduce_op reduce_res reverse0=False dtype=None mask=None",
        "data op0 operand0, and each partition reduced by reduce_op in `reduce_res`.",
        _of_data,
    ),
    "tensor_tensor_scan": _Form(
        "data0 data1 initial op0 op1 reverse0=False reverse1=False * dtype=None mask=None",
        "result[i] = (data0[i] op0 result[i - 1]) op1 data1[i], `initial` before the first.",
        lambda row, given: _elementwise(row, given, "data0", "data1"),
    ),
    "reciprocal": _Form("data * dtype=None mask=None", "1 / data.", _of_data),
    "dropout": _Form(
        "data prob * mask=None dtype=None",
        "Return data with elements replaced by 0 at random.",
        _of_data,
    ),
    "bn_stats": _Form(
        "data * mask=None dtype=None",
        "Return statistics of each partition.",
        lambda row, given: _per_partition(row, given, 6),
    ),
    "bn_aggr": _Form(
        "data * mask=None dtype=None",
        "Return mean and variance computed from statistics.",
        lambda row, given: _per_partition(row, given, 2),
    ),
    "max8": _Form(
        "* src mask=None dtype=None",
        "Return the 8 largest elements of each partition.",
        lambda row, given: _per_partition(row, given, 8),
    ),
    "nc_find_index8": _Form(
        "* data vals mask=None dtype=None",
        "Return the positions of 8 values in each partition.",
        lambda row, given: _per_partition(row, given, 8, dtypes.UINT32),
    ),
    "nc_match_replace8": _Form(
        "* data vals imm dst_idx=None mask=None dtype=None",
        "Return data with the first occurrences of 8 values replaced.",
        _of_data,
    ),
    "tensor_copy_predicated": _Form(
        "* src dst predicate reverse_pred=False mask=None dtype=None",
        "dst = src where the predicate is not 0.",
        lambda row, given: _into_dst(row, given, "the copy", "predicate", "src"),
    ),
    "tensor_copy_dynamic_dst": _Form(
        "* dst src mask=None dtype=None engine=unknown",
        "Copy to an offset known at run time.",
        lambda row, given: _into_dst("tensor_copy", given, "the copy", "src"),
    ),
    "range_select": _Form(
        "* on_true_tile comp_op0 comp_op1 bound0 bound1 reduce_cmd=idle reduce_res=None "
        "reduce_op=None range_start=0 on_false_value=None mask=None dtype=None",
        "Return on_true_tile where the index in the partition is within bounds.",
        lambda row, given: _elementwise(row, given, "on_true_tile"),
    ),
    "select_reduce": _Form(
        "* dst predicate on_true on_false reduce_res=None reduce_cmd=idle reduce_op=None "
        "reverse_pred=False mask=None dtype=None",
        "dst = on_true where the predicate is not 0, else on_false.",
        lambda row, given: _into_dst(row, given, row, "predicate", "on_true"),
    ),
}
_DEFAULTS = {
    **{"": Parameter.empty, "None": None, "False": False, "0": 0, "1.0": 1.0},
    **{"idle": reduce_cmd.idle, "unknown": engine.unknown},
}


def _parameters(text: str) -> Iterator[Parameter]:
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for word in text.split():
        name, _, default = word.partition("=")
        if name == "*":
            kind = Parameter.KEYWORD_ONLY
        else:
            yield Parameter(name, kind, default=_DEFAULTS[default])


def _function(name: str, form: _Form) -> Callable[..., Any]:
    """Return the function of a form, which explains arguments that do not fit."""
    parameters = {one.name: one for one in _parameters(form.parameters)}
    positional = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    operands = ROWS[name].operands if name in ROWS else ()
    tiles = [o.name for o in operands if o.name in parameters.keys() - defaults and not o.number]

    def call(*args: Any, **named: Any) -> Any:
        given = {**defaults, **dict(zip(positional, args, strict=False)), **named}
        twice = args and not named.keys().isdisjoint(positional[: len(args)])
        if len(args) > len(positional) or twice or given.keys() != parameters.keys():
            check(f"nisa.{name}", call, args, named)
        for operand_name in tiles:  # the row may do without, but Beta 1 does not
            if given[operand_name] is None:
                tile(None, operand_name)
        return form.record(name, given)

    call.__name__, call.__doc__ = name, form.doc
    returned = "None" if "dst" in parameters else "Tile"
    signature = Signature([*parameters.values()], return_annotation=returned)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


_FUNCTIONS = {name: _function(name, form) for name, form in _FORMS.items()}
tensor_scalar = _FUNCTIONS["tensor_scalar"]
dropout = _FUNCTIONS["dropout"]


# ---- The others ----------------------------------------------------------------------------------


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
        engine=_choice(engine),
    )


def tensor_copy(src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = ANY) -> Tile:
    """Return a copy of a tile."""
    return copy(tile(src, "src"), mask=mask, dtype=dtype, engine=_choice(engine))


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
        region = check_box(region, "a transfer that combines")
        dst, src = part_inside(target, region), part_inside(Tile(view), region)
        srcs, op = [operand(src), operand(dst)], operator(dst_rmw_op)
        emit("dma_compute", dst, srcs=srcs, reduce_op=op, oob_mode=oob_mode)
    elif region.remaining is not None:
        copy_boxes(target, Tile(view), region, oob_mode=oob_mode, dge_mode=dge_mode)
    else:
        part = part_inside(target, region)
        emit("dma_copy", part, src=Tile(cut(view, region)), oob_mode=oob_mode, dge_mode=dge_mode)


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
    source, region, written = _unmasked(op, source, region, mask, (0,))
    part = part_inside(source, region)
    return record("tensor_partition_reduce", output, written, op=operator(op), data=part)


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
    pred: Any, on_true_tile: Any, on_false_value: Any, *, mask: Any = None, dtype: Any = None
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
    parts = conjuncts(pred.placed(axes_of(source.shape, source), source.shape))
    comparisons = [part for part in parts if isinstance(part, Compared)]
    if len(comparisons) < len(parts):
        text = "pred of affine_select joins comparisons with & alone"
        raise KernelError("argument-kind", text, argument="pred")
    selected = part_inside(source, region)
    target = part_inside(output, region)
    for comparison in comparisons:
        select(target, _within(comparison, region), selected, number(on_false_value))
        selected = target
    if len(comparisons) == 1:  # otherwise the second one reads what the first wrote
        body = active().body
        output._written_by = Producer(body, len(body) - 1, 0, region.box, region.remaining)
    note_part(output, Part(region.box, region.remaining))
    return output


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
    return record("memset", output, region, value=number(value), engine=_choice(engine))


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


_OTHERS: tuple[Callable[..., Any], ...] = (
    *(nc_matmul, nc_transpose, tensor_copy, nc_stream_shuffle, dma_copy, dma_transpose),
    *(tensor_reduce, tensor_partition_reduce, iota, affine_select, memset, local_gather),
    sequence_bounds,
)
INSTRUCTIONS = {
    **_FUNCTIONS,
    **{function.__name__: fitting(f"nisa.{function.__name__}", function) for function in _OTHERS},
    "tensor_copy_dynamic_src": fitting("nisa.tensor_copy_dynamic_src", tensor_copy),
}
