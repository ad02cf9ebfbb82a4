"""Semantics of the vector engine's rows with a fused reduction. Arithmetic is float32."""

from __future__ import annotations

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.numerics.scan import cumulative
from nkic.simulate.numerics.vector import select
from nkic.simulate.semantics.accumulator import Accumulator
from nkic.simulate.semantics.binding import result, shape_of, vector


@semantics("tensor_scalar_reduce")
def tensor_scalar_reduce(decoded: Decoded) -> Step:
    op0, reduce_op = decoded.attributes["op0"], decoded.attributes["reduce_op"]
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)
    operand = vector(decoded, "operand0", sizes)
    total = Accumulator(decoded, decoded.tile("data"), reduce_op, "reduce_init")
    function = ARITHMETIC[op0]

    def step() -> None:
        result = out()
        function(data(), operand(), result)
        total.add(result)
        store()
        total.read_out()

    return step


@semantics("tensor_scalar_cumulative")
def tensor_scalar_cumulative(decoded: Decoded) -> Step:
    op0, op1 = decoded.attributes["op0"], decoded.attributes["op1"]
    src, (out, store, _) = decoded.tile("src"), decoded.tile("dst").sink()
    load, operand = src.load(), vector(decoded, "imm0", None)
    accumulator = Accumulator(decoded, src, op1, "imm1")
    between, function = decoded.scratch.floats(src.shape_in(None)), ARITHMETIC[op0]

    def step() -> None:
        function(load(), operand(), between)
        column = accumulator.start()
        result = out()
        cumulative(between, column, result, op1)
        np.copyto(column, result[:, -1:])
        store()

    return step


@semantics("select_reduce")
def select_reduce(decoded: Decoded) -> Step:
    """`reduce_op` is maximum; the rules reject others."""
    sizes = shape_of(decoded, "dst", "predicate", "on_true")
    chosen, (out, store, _) = decoded.tile("on_true").load(sizes), result(decoded, sizes)
    shape = decoded.tile("dst").shape_in(sizes)
    flags = decoded.tile("predicate").seen_as(shape[1:])
    otherwise = vector(decoded, "on_false", sizes)
    compare = np.equal if decoded.attributes["reverse_pred"] else np.not_equal
    greatest = Accumulator(decoded, decoded.tile("on_true"), "maximum")
    mask = decoded.scratch.array(shape, np.bool_)

    def step() -> None:
        compare(flags(), 0, out=mask)
        result = out()
        select(mask, chosen(), otherwise(), result)
        greatest.add(result)
        store()
        greatest.read_out()

    return step


@semantics("range_select")
def range_select(decoded: Decoded) -> Step:
    """`reduce_op` is maximum; the rules reject others."""
    tile, values = decoded.tile("on_true_tile"), decoded.attributes
    sizes = shape_of(decoded, "dst", "on_true_tile")
    chosen, (out, store, _) = tile.load(sizes), result(decoded, sizes)
    index = (values["range_start"] + np.arange(tile.free)).astype(np.float32)
    shape = decoded.tile("dst").shape_in(sizes)
    index = index.reshape(1, *shape[1:])
    bounds = [vector(decoded, name, sizes) for name in ("bound0", "bound1")]
    compare0, compare1 = ARITHMETIC[values["comp_op0"]], ARITHMETIC[values["comp_op1"]]
    mask, upper_mask = (decoded.scratch.array(shape, np.bool_) for _ in range(2))
    fill = np.array(values["on_false_value"], np.float32)
    greatest = Accumulator(decoded, tile, "maximum")

    def step() -> None:
        compare0(index, bounds[0](), mask)
        compare1(index, bounds[1](), upper_mask)
        np.logical_and(mask, upper_mask, out=mask)
        result = out()
        select(mask, chosen(), fill, result)
        greatest.add(result)
        store()
        greatest.read_out()

    return step
