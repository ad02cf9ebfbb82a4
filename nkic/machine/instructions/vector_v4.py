"""Rows of the vector and scalar engines that exist from NeuronCore-v4 on."""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import (
    elementwise,
    float32_vectors,
    same_dtype,
    same_partitions,
    wrong_operator,
)
from nkic.machine.instructions import scalar, vector_folds
from nkic.machine.instructions.parts import (
    alu,
    choice,
    flag,
    no_scatter_to_psum,
    optional,
    result,
    source,
)
from nkic.machine.instructions.parts import scalar as scalar_operand
from nkic.machine.operands import AttributeKind, Depends, Facts, Row, Tile, Violation
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.rules import shown
from nkic.machine.targets import Engine

INTEGERS = frozenset({"int8", "int16", "int32", "uint8", "uint16"})
FLOATS = vector_folds.FLOATS
PAIRS = (
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
)
REDUCTIONS = ("add", "maximum", "minimum", "abs_max", "abs_min")


def known_pair(facts: Facts) -> Violation | None:
    """The operators are one of the scalar engine's six pairs."""
    op0, op1 = facts.attributes["op0"], facts.attributes["op1"]
    if (op0, op1) in PAIRS:
        return None
    return Violation(
        "operator-not-supported",
        f"`op0` is {op0} and `op1` is {op1}; the pairs are "
        f"{', '.join(f'({first}, {second})' for first, second in PAIRS)}",
        "op0",
        "use `nisa.tensor_scalar` first, with any operators",
    )


def nothing_to_reverse(facts: Facts) -> Violation | None:
    """`reverse0` and `reverse1` are used only with operators that have two inputs."""
    for flag_, op in (("reverse0", "op0"), ("reverse1", "op1")):
        if facts.attributes[flag_] and facts.attributes[op] == "bypass":
            text = f"`{flag_}` is True and `{op}` is bypass, which has one input"
            return Violation("operand-missing", text, flag_, f"leave `{flag_}` out")
    return None


def parameter_used(facts: Facts) -> Violation | None:
    """`relu_param` is 0 for functions without a parameter."""
    op, value = facts.attributes["op"], facts.operands["relu_param"]
    if ACTIVATIONS[op].parameter or (not isinstance(value, Tile) and value == 0):
        return None
    text = f"`relu_param` is {shown(value)} and `op` is {op}, which has no parameter"
    hint = "leave out `relu_param`, or use `op=nl.prelu`"
    return Violation("operand-missing", text, "relu_param", hint)


def reduction(facts: Facts) -> Violation | None:
    """`reduce_op` is supported by the scalar engine, if given."""
    op = facts.attributes["reduce_op"]
    if op is None or op in REDUCTIONS:
        return None
    return wrong_operator("reduce_op", ALU[op], f"one of {', '.join(REDUCTIONS)}")


ROWS = (
    Row(
        name="exponential",
        opcode=59,
        depends=Depends.ELEMENTWISE,
        doc="dst = e to the power of (src - max_value). reduce_cmd selects how the sum of the "
        "results updates the accumulators, which are then copied to reduce_res.",
        parameters=(
            *("dst", "src", "max_value", "reduce_res", "reduce_cmd", "reduce_init", "name"),
        ),
        operands=(
            result(indexed=True, dtypes=FLOATS | INTEGERS, max_rank=4),
            source(
                "src",
                indexed=True,
                dtypes=FLOATS - {"tfloat32"} | INTEGERS | {"uint32"},
                max_rank=4,
            ),
            scalar_operand("max_value", default=0.0),
            result("reduce_res", dtypes=FLOATS, column=True, optional=True, default=None),
            scalar_operand("reduce_init", default=0.0),
        ),
        attributes=(choice("reduce_cmd", "idle", "idle", "reset_reduce", "reduce", "load_reduce"),),
        engines=(Engine.VECTOR,),
        # Four times the scalar engine's rate (Trainium3 architecture guide).
        cost=costs.per_element("src", 1 / 4, basis=costs.NEW_IN_V4),
        rules=(
            elementwise("dst", "src"),
            same_partitions("src", "max_value", "reduce_res", "reduce_init"),
            float32_vectors("max_value", "reduce_init"),
            vector_folds.initial("reduce_init"),
            vector_folds.nothing_to_read,
        ),
        effects=vector_folds.accumulating,
        generation=4,
        since=Profile.NKI_0_3,
    ),
    Row(
        name="activate2",
        opcode=82,
        depends=Depends.ELEMENTWISE,
        doc="dst = op((data op0 imm0) op1 imm1). reduce_cmd selects how the results, folded with "
        "reduce_op, update the reduce registers, which are then copied to reduce_res.",
        parameters=(
            *("dst", "op", "data", "imm0", "imm1", "op0", "op1", "relu_param", "reverse0"),
            *("reverse1", "reduce_op", "reduce_res", "reduce_cmd", "name"),
        ),
        operands=(
            result(indexed=True),
            source("data", indexed=True),
            scalar_operand("imm0"),
            scalar_operand("imm1"),
            scalar_operand("relu_param", default=0.0),
            scalar.READ_OUT,
        ),
        attributes=(
            scalar.FUNCTION,
            alu("op0"),
            alu("op1"),
            flag("reverse0"),
            flag("reverse1"),
            optional("reduce_op", AttributeKind.ALU),
            choice("reduce_cmd", "idle", *scalar.COMMANDS),
        ),
        engines=(Engine.SCALAR,),
        cost=costs.activating,
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "imm0", "imm1", "relu_param", "reduce_res"),
            same_dtype("imm0", "imm1"),
            known_pair,
            nothing_to_reverse,
            parameter_used,
            reduction,
            scalar.reduces_with_something,
            no_scatter_to_psum,
        ),
        effects=scalar.accumulating,
        warn=scalar.reduces_nothing,
        generation=4,
        since=Profile.NKI_0_4,
        source="nki.isa.activate2; NKI API common fields, supported activation functions",
    ),
)
