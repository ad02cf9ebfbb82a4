"""Rows of the scalar engine: elementwise functions, approximated with tables; and of NeuronCore-v4.

The 128 reduce registers of the scalar engine, one per lane, are the state "scalar.accumulator".
"""

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
from nkic.machine.instructions import vector_folds
from nkic.machine.instructions.parts import (
    REDUCE_COMMANDS,
    alu,
    choice,
    flag,
    no_scatter_to_psum,
    optional,
    result,
    scalar,
    source,
)
from nkic.machine.operands import (
    Attribute,
    AttributeKind,
    Depends,
    Effects,
    Facts,
    Row,
    Tile,
    Violation,
)
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.rules import shown
from nkic.machine.targets import Engine

ACCUMULATOR = ("scalar.accumulator",)
SCALED = (
    result(indexed=True),
    source("data", indexed=True),
    scalar("bias", optional=True, default=None),
    scalar("scale", default=1.0),
)
READ_OUT = result("reduce_res", column=True, optional=True, default=None)
FUNCTION = Attribute("op", AttributeKind.ACTIVATION)
COMMANDS = tuple(command for command in REDUCE_COMMANDS if command != "load_reduce")


def adds_only(facts: Facts) -> Violation | None:
    """`reduce_op` is add, if given."""
    op = facts.attributes["reduce_op"]
    if op is None or op == "add":
        return None
    text = f"`reduce_op` is {op}; the scalar engine reduces with add only"
    hint = "use `nl.add`, or `nisa.tensor_reduce` on the vector engine"
    return Violation("operator-not-supported", text, "reduce_op", hint)


def reduces_with_something(facts: Facts) -> Violation | None:
    """A reducing command comes with an operator."""
    command = facts.attributes["reduce_cmd"]
    if "reduce" not in command or facts.attributes["reduce_op"] is not None:
        return None
    text = f"`reduce_cmd` is {command} and `reduce_op` is None"
    return Violation("operand-missing", text, "reduce_op", "pass `reduce_op=nl.add`")


def bias_type(facts: Facts) -> Violation | None:
    """`bias` is not tfloat32; a number needs NeuronCore-v3."""
    bias = facts.operands["bias"]
    if isinstance(bias, Tile) and bias.dtype.name == "tfloat32":
        text = "`bias` is tfloat32, which the scalar engine does not add"
        return Violation("dtype-not-supported", text, "bias", "make `bias` a float32 tile")
    if isinstance(bias, int | float) and facts.target.generation < 3:
        text = f"`bias` is the number {bias}, which needs trn2; the target is {facts.target.name}"
        hint = "pass a [partitions, 1] tile that holds the number"
        return Violation("needs-newer-target", text, "bias", hint)
    return None


def known_function(facts: Facts) -> Violation | None:
    """`op` has no parameter (only activate2 takes those); v2's reciprocal takes no bias."""
    op = facts.attributes["op"]
    if ACTIVATIONS[op].parameter:
        text, hint = f"`op` is {op}, which has a parameter", "use `nisa.activate2`, on trn3"
    elif op == "reciprocal" and facts.operands["bias"] is not None and facts.target.generation < 3:
        text = f"`op` is reciprocal with a `bias`, which {facts.target.name} does not support"
        hint = "add the bias with `nisa.tensor_scalar` first"
    else:
        return None
    return Violation("operator-not-supported", text, "op", hint)


def reduces_nothing(facts: Facts, cores: int) -> Violation | None:
    """Warn if `reduce_op` and `reduce_res` are given, but `reduce_cmd` does not reduce."""
    attributes = facts.attributes
    requested = attributes["reduce_op"] is not None and facts.maybe("reduce_res") is not None
    if not requested or attributes["reduce_cmd"] != "idle":
        return None
    return Violation(
        "stale-accumulator",
        "`reduce_op` and `reduce_res` are given and `reduce_cmd` is idle: nothing is reduced, and "
        "`reduce_res` receives the former content of the reduce registers",
        "reduce_res",
        "pass `reduce_cmd=nisa.reduce_cmd.reset_reduce`, or leave out `reduce_op`",
    )


def accumulating(facts: Facts) -> Effects:
    """Return the effects of `reduce_cmd` and of reading the reduce registers.

    A command that resets them does not depend on their previous values, even if read afterwards.
    """
    command = facts.attributes["reduce_cmd"]
    fresh = command in ("reset", "reset_reduce")
    reads_out = facts.maybe("reduce_res") is not None
    reads = command == "reduce" or (reads_out and not fresh)
    writes = command != "idle"
    return Effects(ACCUMULATOR if reads else (), ACCUMULATOR if writes else ())


def accumulating_afresh(facts: Facts) -> Effects:
    """Return the effects of activation_reduce, which starts from zero."""
    return Effects(writes=ACCUMULATOR)


RULES = (
    elementwise("dst", "data"),
    same_partitions("data", "bias", "scale", "reduce_res"),
    float32_vectors("scale"),
    bias_type,
    known_function,
    adds_only,
    no_scatter_to_psum,
)
SCALAR_ENGINE = (Engine.SCALAR,)

ROWS = (
    Row(
        name="activation",
        opcode=80,
        depends=Depends.ELEMENTWISE,
        doc="dst = op(data x scale + bias). reduce_cmd selects how the sum of the results updates "
        "the reduce registers, which are then copied to reduce_res.",
        parameters=(
            *("dst", "op", "data", "bias", "scale"),
            *("reduce_op", "reduce_res", "reduce_cmd", "name"),
        ),
        operands=(*SCALED, READ_OUT),
        attributes=(
            FUNCTION,
            optional("reduce_op", AttributeKind.ALU),
            choice("reduce_cmd", "idle", *COMMANDS),
        ),
        engines=SCALAR_ENGINE,
        cost=costs.activating,
        rules=(*RULES, reduces_with_something),
        effects=accumulating,
        warn=reduces_nothing,
        source="nki.isa.activation; NKI API common fields, supported activation functions",
    ),
    Row(
        name="activation_reduce",
        opcode=81,
        depends=Depends.ELEMENTWISE,
        doc="dst = op(data x scale + bias); reduce_res = the sum of the results.",
        parameters=(*("dst", "op", "data", "reduce_op", "reduce_res"), *("bias", "scale", "name")),
        operands=(*SCALED, result("reduce_res", column=True, optional=True)),
        attributes=(FUNCTION, alu("reduce_op")),
        engines=SCALAR_ENGINE,
        cost=costs.activating,
        rules=RULES,
        effects=accumulating_afresh,
    ),
)

# ---- The vector and scalar engines from NeuronCore-v4 on ----------------------------------------

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


V4_ROWS = (
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
            scalar("max_value", default=0.0),
            result("reduce_res", dtypes=FLOATS, column=True, optional=True, default=None),
            scalar("reduce_init", default=0.0),
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
            scalar("imm0"),
            scalar("imm1"),
            scalar("relu_param", default=0.0),
            READ_OUT,
        ),
        attributes=(
            FUNCTION,
            alu("op0"),
            alu("op1"),
            flag("reverse0"),
            flag("reverse1"),
            optional("reduce_op", AttributeKind.ALU),
            choice("reduce_cmd", "idle", *COMMANDS),
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
            reduces_with_something,
            no_scatter_to_psum,
        ),
        effects=accumulating,
        warn=reduces_nothing,
        generation=4,
        since=Profile.NKI_0_4,
        source="nki.isa.activate2; NKI API common fields, supported activation functions",
    ),
)
