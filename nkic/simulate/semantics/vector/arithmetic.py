"""Semantics of the vector engine's rows (some also run on scalar and gpsimd).

Arithmetic is float32, with one rounding to dst's type; bitvec operators work on bits; gpsimd adds
and multiplies 32-bit integers exactly. Sources: `nki.isa`, the instruction's own page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nkic.machine.codecs import decode
from nkic.machine.engines import Engine
from nkic.machine.operators import ALU, SummationOrder
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.scan import tensor_tensor_scan as scan
from nkic.simulate.numerics.statistics import bn_aggr as aggregated
from nkic.simulate.numerics.statistics import bn_stats as statistics
from nkic.simulate.numerics.vector import max8 as largest
from nkic.simulate.semantics.binding import (
    Floats,
    all_int32,
    binary,
    is_bitvec,
    result,
    shape_of,
    vector,
)
from nkic.simulate.semantics.bitwise import Stage, bitvec_step, integer_step, reduce_bits_step
from nkic.simulate.semantics.copying import (
    as_held,
    choosing,
    constant,
    copy_step,
    fill_step,
)
from nkic.simulate.semantics.summing import Reduction
from nkic.simulate.storage.lost import is_rounded
from nkic.simulate.tile import Tile


@semantics("tensor_copy")
def tensor_copy(decoded: Decoded) -> Step:
    """The bits are copied on every engine; only vector and gpsimd are documented to (assumed)."""
    dst, src = decoded.tile("dst"), decoded.tile("src")
    copy = copy_step(dst, src)
    if decoded.engine is not Engine.SCALAR or dst.dtype is not src.dtype:
        return copy
    if src.notes is None or not is_rounded(src.dtype):
        return copy
    notes = src.notes

    def step() -> None:
        raw = src.bits()
        notes.read(raw, decode(raw, src.dtype))
        copy()

    return step


@semantics("memset")
def memset(decoded: Decoded) -> Step:
    return fill_step(decoded.tile("dst"), decoded.attributes["value"])


@semantics("tensor_tensor")
def tensor_tensor(decoded: Decoded) -> Step:
    op = decoded.attributes["op"]
    if is_bitvec(op):
        return bitvec_step(decoded, "data1", [Stage(op, "data2", False)])
    if decoded.engine is Engine.GPSIMD and all_int32(decoded) and ALU[op].integers:
        return integer_step(decoded, "data1", [Stage(op, "data2", False)])
    sizes = shape_of(decoded, "dst", "data1", "data2")
    a, b = decoded.tile("data1").load(sizes), decoded.tile("data2").load(sizes)
    out, store, _ = result(decoded, sizes)
    function = binary(op, False)

    def step() -> None:
        function(a(), b(), out())
        store()

    return step


@semantics("tensor_scalar")
def tensor_scalar(decoded: Decoded) -> Step:
    op0, reverse0, op1, reverse1 = decoded.attributes.values()
    stages = [Stage(op0, "operand0", reverse0)]
    if op1 is not None:
        stages.append(Stage(op1, "operand1", reverse1))
    if is_bitvec(op0):
        return bitvec_step(decoded, "data", stages)
    if _is_address_arithmetic(decoded, stages):
        return integer_step(decoded, "data", stages)
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)
    first, operand0 = binary(op0, reverse0), vector(decoded, "operand0", sizes)
    if op1 is None:

        def one() -> None:
            first(data(), operand0(), out())
            store()

        return one
    second, operand1 = binary(op1, reverse1), vector(decoded, "operand1", sizes)
    between = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def two() -> None:
        first(data(), operand0(), between)
        second(between, operand1(), out())
        store()

    return two


def _is_address_arithmetic(decoded: Decoded, stages: list[Stage]) -> bool:
    """32-bit integers throughout, some of them in a vector: exact (assumed; docs/fidelity.md)."""
    operands = [decoded.operands[stage.operand] for stage in stages]
    return (
        any(isinstance(value, Tile) for value in operands)
        and all(not isinstance(value, float) or value.is_integer() for value in operands)
        and all(ALU[stage.op].integers for stage in stages)
        and all_int32(decoded)
    )


@semantics("scalar_tensor_tensor")
def scalar_tensor_tensor(decoded: Decoded) -> Step:
    op0, op1, reverse0, reverse1 = decoded.attributes.values()
    sizes = shape_of(decoded, "dst", "data", "operand1")
    data, tensor = decoded.tile("data").load(sizes), decoded.tile("operand1").load(sizes)
    out, store, _ = result(decoded, sizes)
    scalar = vector(decoded, "operand0", sizes)
    first, second = binary(op0, reverse0), binary(op1, reverse1)
    between = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def step() -> None:
        first(data(), scalar(), between)
        second(between, tensor(), out())
        store()

    return step


# Sums of 4,096 rows of 128 float32 were bit-identical to those of a loop in float32, for four seeds
# (a trn1.2xlarge; GitHub, LaelaZorana/kernel-grader-mi300x-rocm-trainium-nki, kernel-nki).
REDUCED: Mapping[str, SummationOrder] = {"trn1": "float32"}


@semantics("tensor_reduce")
def tensor_reduce(decoded: Decoded) -> Step:
    """`keepdims` only gives dst's shape dimensions of size 1, which have no effect here."""
    op, data, dst = decoded.attributes["op"], decoded.tile("data"), decoded.tile("dst")
    keep = 1 + len(data.sizes) - len(decoded.attributes["axis"])
    if is_bitvec(op):
        return reduce_bits_step(op, data, dst, keep)
    load, (out, store, _) = data.load(data.sizes), dst.sink()
    total = decoded.scratch.floats((data.partitions, *data.sizes)[:keep])
    flat = total.reshape(dst.partitions, dst.free)
    sign = np.float32(-1 if decoded.attributes["negate"] else 1)
    reduce = Reduction(decoded, op, REDUCED)

    def step() -> None:
        reduce(load(), total, keep)
        np.multiply(flat, sign, out=out())
        store()

    return step


@semantics("tensor_tensor_scan")
def tensor_tensor_scan(decoded: Decoded) -> Step:
    op0, op1, reverse0, reverse1 = decoded.attributes.values()
    data0, data1 = decoded.tile("data0").load(), decoded.tile("data1").load()
    initial, (out, store, _) = vector(decoded, "initial", None), decoded.tile("dst").sink()

    def step() -> None:
        scan(data0(), data1(), initial(), out(), op0, op1, reverse0, reverse1)
        store()

    return step


@semantics("bn_stats")
def bn_stats(decoded: Decoded) -> Step:
    order = decoded.order()
    return _statistics(decoded, "data", lambda values, out: statistics(values, out, order))


@semantics("bn_aggr")
def bn_aggr(decoded: Decoded) -> Step:
    order = decoded.order()
    return _statistics(decoded, "data", lambda values, out: aggregated(values, out, order))


@semantics("max8")
def max8(decoded: Decoded) -> Step:
    return _statistics(decoded, "src", largest)


def _statistics(decoded: Decoded, name: str, function: Callable[[Floats, Floats], Any]) -> Step:
    """Return a step for per-partition statistics, which are written after all data are read."""
    load, (out, store, _) = decoded.tile(name).load(), decoded.tile("dst").sink(buffered=True)

    def step() -> None:
        function(load(), out())
        store()

    return step


@semantics("reciprocal")
def reciprocal(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)

    def step() -> None:
        np.reciprocal(data(), out=out())
        store()

    return step


@semantics("tensor_copy_predicated")
def tensor_copy_predicated(decoded: Decoded) -> Step:
    dst, src = decoded.tile("dst"), decoded.maybe("src")
    sizes = shape_of(decoded, "dst", "src", "predicate") or dst.sizes
    flags, into = decoded.tile("predicate").seen_as(sizes), dst.seen_as(sizes)
    compare = np.equal if decoded.attributes["reverse_pred"] else np.not_equal
    number = constant(dst, decoded.number("src"))
    load = as_held(src, dst, sizes) if src else lambda: number
    shape = (dst.partitions, *sizes)
    mask, choose = decoded.scratch.array(shape, np.bool_), choosing(dst.form.unit)

    def step() -> None:
        compare(flags(), 0, out=mask)
        window = into()
        choose(mask, load(), window, window)

    return step
