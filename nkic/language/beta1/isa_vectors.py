"""Element-wise instructions of the scalar and the vector engine in Beta 1's `nki.isa`."""

from __future__ import annotations

from typing import Any

from nkic.language import library
from nkic.language.beta1.extents import Extent, column, expanded, part_inside
from nkic.language.beta1.functions import common_shape, readable_with
from nkic.language.beta1.isa_moves import ANY, engine_choice
from nkic.language.beta1.moving import (
    in_sbuf,
    kind,
    number,
    output_for,
    output_like,
    record,
    tile,
)
from nkic.language.beta1.operators import operator
from nkic.language.beta1.tiles import Tile
from nkic.language.enums import reduce_cmd
from nkic.language.tensors.tensor import NkiTensor
from nkic.machine.instructions import ROWS
from nkic.machine.operands import AttributeKind, Operand

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
