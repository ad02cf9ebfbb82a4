"""Rows of the vector engine that compute element by element and also reduce."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import (
    elementwise,
    float32_vectors,
    not_both_psum,
    operators,
    same_partitions,
    wrong_operator,
)
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.accumulator import (
    FLOATS,
    READ_OUT,
    accumulating,
    initial,
    nothing_to_read,
    reduces_with,
    stage,
)
from nkic.machine.instructions.parts import alu, choice, flag, result, scalar, source
from nkic.machine.operands import Attribute, AttributeKind, Depends, Row, Violation
from nkic.machine.operators import ALU

VECTOR = (Engine.VECTOR,)
FP32_MIN = -3.4028234663852886e38  # the lowest finite float32
FP32_MIN_ULP = 2.0**104
EXACT = 1 << 24  # indices are compared in float32, which is exact up to here
FLOAT32 = frozenset({"float32"})
ANY_FLOAT = FLOATS | {"float8_e4m3fn"}
NARROW = ANY_FLOAT | {"int8", "int16", "uint8", "uint16"}  # no 32-bit integers
CUMULATED = NARROW - {"tfloat32"}
RANGES = ("equal", "less", "less_equal", "greater", "greater_equal")
CUMULATIVE = ("add", "subtract", "multiply", "maximum", "minimum")
REDUCTIONS = ("add", "multiply", "maximum", "minimum")
READ_FLOAT = result("reduce_res", dtypes=ANY_FLOAT, column=True, optional=True, default=None)


def not_reversed(facts: Facts) -> Violation | None:
    """`reverse0`, a parameter of the call that the instruction does not support yet, is False."""
    if not facts.attributes["reverse0"]:
        return None
    return Violation(
        "operator-not-supported",
        "`reverse0` is True, which the instruction does not support",
        "reverse0",
        "use `nisa.tensor_scalar` with `reverse0`, then `nisa.tensor_reduce`",
    )


def accumulates(facts: Facts) -> Violation | None:
    """`op1` is supported by tensor_scalar_cumulative."""
    op = facts.attributes["op1"]
    if op in CUMULATIVE:
        return None
    return wrong_operator("op1", ALU[op], f"one of {', '.join(CUMULATIVE)}")


def range_comparisons(facts: Facts) -> Violation | None:
    """`comp_op0` and `comp_op1` compare order or equality."""
    for name in ("comp_op0", "comp_op1"):
        op = facts.attributes[name]
        if op not in RANGES:
            return wrong_operator(name, ALU[op], f"one of {', '.join(RANGES)}")
    return None


def lowest_fill(facts: Facts) -> Violation | None:
    """`on_false_value` is the lowest float32, the hardware's only fill value."""
    value = facts.attributes["on_false_value"]
    if abs(value - FP32_MIN) < FP32_MIN_ULP / 2:
        return None
    return Violation(
        "fill-value",
        f"`on_false_value` is {value}, but must be the lowest float32, {FP32_MIN:.8g}",
        "on_false_value",
        f"pass {FP32_MIN:.8g}, or use `nisa.select_reduce`",
    )


def exact_range(facts: Facts) -> Violation | None:
    """`range_start` and all indices are integers that float32 represents exactly."""
    start, count = facts.attributes["range_start"], facts.tile("on_true_tile").free
    if -EXACT <= start <= EXACT - count:
        return None
    return Violation(
        "index-count",
        f"`range_start` is {start} and counts {count} elements; indices must be within {EXACT} "
        "of 0, to be exact in float32",
        "range_start",
        f"subtract part of `range_start` from both bounds, so that at most {EXACT - count} is left",
    )


ROWS = (
    Row(
        name="tensor_scalar_reduce",
        opcode=52,
        depends=Depends.ELEMENTWISE,
        doc="dst = data op0 operand0. reduce_cmd selects how the results of a partition, folded "
        "with reduce_op, update the accumulators, which are then copied to reduce_res.",
        parameters=(
            *("dst", "data", "op0", "operand0", "reduce_op", "reduce_res", "reverse0"),
            *("reduce_cmd", "reduce_init", "reduce_res_negate", "name"),
        ),
        operands=(
            result(indexed=True),
            source("data", indexed=True),
            scalar("operand0", optional=True),
            replace(READ_OUT, optional_since=Profile.NKI_0_6),
            scalar("reduce_init", optional=True, default=None),
        ),
        attributes=(
            alu("op0"),
            alu("reduce_op"),
            flag("reverse0"),
            choice("reduce_cmd", "reset_reduce", "reset_reduce", "reduce", "load_reduce"),
            flag("reduce_res_negate"),
        ),
        engines=VECTOR,
        cost=costs.per_element("data", read_out=True),
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "operand0", "reduce_res", "reduce_init"),
            operators(("op0",), group="arithmetic"),
            stage("op0", "operand0"),
            float32_vectors("operand0", "reduce_init"),
            reduces_with(*REDUCTIONS),
            not_reversed,
            initial("reduce_init"),
        ),
        effects=accumulating,
        source="nki.isa.tensor_scalar_reduce",
    ),
    Row(
        name="tensor_scalar_cumulative",
        opcode=53,
        depends=Depends.BY_PARTITION,
        doc="dst[i] = (src[i] op0 imm0) op1 dst[i - 1], starting from the accumulator.",
        parameters=("dst", "src", "op0", "op1", "imm0", "imm1", "reduce_cmd", "name"),
        operands=(
            result(indexed=True, dtypes=CUMULATED),
            source("src", indexed=True, dtypes=CUMULATED),
            scalar("imm0"),
            scalar("imm1", optional=True, default=None),
        ),
        attributes=(
            alu("op0"),
            alu("op1"),
            choice("reduce_cmd", "reset_reduce", "reset_reduce", "reduce", "load_reduce"),
        ),
        engines=VECTOR,
        cost=costs.per_element("src", basis=costs.UNKNOWN),
        rules=(
            elementwise("dst", "src"),
            same_partitions("src", "imm0", "imm1"),
            operators(("op0",), group="arithmetic"),
            stage("op0", "imm0"),
            float32_vectors("imm0", "imm1"),
            accumulates,
            initial("imm1", only=False),  # the published example also passes it with reduce
        ),
        effects=accumulating,
        source="nki.isa.tensor_scalar_cumulative",
    ),
    Row(
        name="select_reduce",
        opcode=54,
        depends=Depends.BY_PARTITION,
        doc="dst = on_true where predicate is not 0 (where it is 0, if reversed), else on_false; "
        "reduce_res = the maximum of each partition.",
        parameters=(
            *("dst", "predicate", "on_true", "on_false", "reduce_res", "reduce_cmd"),
            *("reduce_op", "reverse_pred", "name"),
        ),
        operands=(
            result(),
            source("predicate", dtypes=frozenset({"int8", "uint8", "int16", "uint16"})),
            source("on_true", dtypes=CUMULATED | {"bool"}),
            scalar("on_false", into="dst"),
            READ_FLOAT,
        ),
        attributes=(
            choice("reduce_cmd", "idle", "idle", "reset_reduce", "reduce"),
            alu("reduce_op", default="maximum"),
            flag("reverse_pred"),
        ),
        engines=VECTOR,
        cost=costs.two_tiles("on_true", "predicate", costs.UNKNOWN),
        rules=(
            elementwise("dst", "predicate", "on_true"),
            same_partitions("dst", "on_false", "reduce_res"),
            not_both_psum("on_true", "predicate"),
            reduces_with("maximum"),
            nothing_to_read,
        ),
        effects=accumulating,
        source="nki.isa.select_reduce",
    ),
    Row(
        name="range_select",
        opcode=55,
        depends=Depends.BY_PARTITION,
        doc="dst = on_true_tile where the index in the partition, counted from range_start, "
        "compares true with both bounds, else the lowest float32; reduce_res = the maximum.",
        parameters=(
            *("dst", "on_true_tile", "comp_op0", "comp_op1", "bound0", "bound1", "reduce_cmd"),
            *("reduce_res", "reduce_op", "range_start", "on_false_value", "name"),
        ),
        operands=(
            result(),
            source("on_true_tile", dtypes=ANY_FLOAT),
            source("bound0", dtypes=FLOAT32, column=True),
            source("bound1", dtypes=FLOAT32, column=True),
            READ_OUT,
        ),
        attributes=(
            alu("comp_op0"),
            alu("comp_op1"),
            choice("reduce_cmd", "reset_reduce", "idle", "reset", "reduce", "reset_reduce"),
            alu("reduce_op", default="maximum"),
            Attribute("range_start", AttributeKind.INT32, default=0),
            Attribute("on_false_value", AttributeKind.NUMBER, default=FP32_MIN),
        ),
        engines=VECTOR,
        cost=costs.per_element("on_true_tile"),
        rules=(
            elementwise("dst", "on_true_tile"),
            same_partitions("on_true_tile", "bound0", "bound1", "reduce_res"),
            range_comparisons,
            reduces_with("maximum"),
            nothing_to_read,
            exact_range,
            lowest_fill,
        ),
        effects=accumulating,
        generation=3,
        source="nki.isa.range_select",
    ),
)
