"""Rows of the scalar engine: elementwise functions, approximated with tables.

The engine's 128 reduce registers, one per lane, are the state "scalar.accumulator".
"""

from __future__ import annotations

from nkic.machine import costs
from nkic.machine.constraints import elementwise, float32_vectors, same_partitions
from nkic.machine.instructions.parts import (
    REDUCE_COMMANDS,
    alu,
    choice,
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
from nkic.machine.operators import ACTIVATIONS
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
