"""Element-wise instructions of the scalar and the vector engine in Beta 1's `nki.isa`."""

from __future__ import annotations

from typing import Any

from nkic.language import library
from nkic.language.beta1.extents import Extent, column, expanded
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
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "activation",
        output,
        region,
        op=operator(op),
        data=expanded(source, output.shape, region),
        bias=None if bias is None else per_partition(bias, region),
        scale=per_partition(scale, region),
        reduce_op=operator(reduce_op, "reduce_op"),
        reduce_res=None if reduce_res is None else column(tile(reduce_res), region),
        reduce_cmd=reduce_cmd,
    )


def per_partition(value: Any, region: Extent) -> Any:
    """Convert an operand with one element per partition, or a number."""
    value = number(value)
    return column(tile(value), region) if isinstance(value, NkiTensor) else value


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
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "activation_reduce",
        output,
        region,
        op=operator(op),
        data=expanded(source, output.shape, region),
        reduce_op=operator(reduce_op, "reduce_op"),
        reduce_res=column(tile(reduce_res, "reduce_res"), region),
        bias=None if bias is None else per_partition(bias, region),
        scale=per_partition(scale, region),
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
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "tensor_scalar",
        output,
        region,
        data=expanded(source, output.shape, region),
        op0=operator(op0, "op0"),
        operand0=per_partition(operand0, region),
        reverse0=reverse0,
        op1=operator(op1, "op1"),
        operand1=None if operand1 is None else per_partition(operand1, region),
        reverse1=reverse1,
        engine=engine_choice(engine),
    )


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
        data=expanded(source, output.shape, region),
        op0=operator(op0, "op0"),
        operand0=per_partition(operand0, region),
        op1=operator(op1, "op1"),
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
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record(
        "tensor_scalar_reduce",
        output,
        region,
        data=expanded(source, output.shape, region),
        op0=operator(op0, "op0"),
        operand0=per_partition(operand0, region),
        reduce_op=operator(reduce_op, "reduce_op"),
        reduce_res=column(tile(reduce_res, "reduce_res"), region),
        reverse0=reverse0,
    )


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
        initial=per_partition(initial, region),
        op0=operator(op0, "op0"),
        op1=operator(op1, "op1"),
        reverse0=reverse0,
        reverse1=reverse1,
    )


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """1 / data."""
    source = tile(data, "data")
    output, region = output_like(source, dtype, mask)
    if region.empty:
        return output
    return record("reciprocal", output, region, data=expanded(source, output.shape, region))
