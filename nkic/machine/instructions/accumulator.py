"""The vector engine's accumulators, one float32 per lane: the state "vector.accumulator".

exponential, range_select, select_reduce, tensor_scalar_reduce and tensor_scalar_cumulative
share them. `reduce_cmd` selects how an instruction updates them; `idle` leaves them undefined.
Source: `nki.isa`, "Accumulator behavior" of these instructions.
"""

from __future__ import annotations

from nkic.machine.arguments import shown
from nkic.machine.constraints import wrong_operator
from nkic.machine.facts import Facts, Tile
from nkic.machine.instructions.parts import result
from nkic.machine.operands import Effects, Rule, Violation
from nkic.machine.operators import ALU

STATE = ("vector.accumulator",)
FLOATS = frozenset({"float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"})
READ_OUT = result("reduce_res", column=True, optional=True, default=None)


def accumulating(facts: Facts) -> Effects:
    """Return the effects of `reduce_cmd`: only `reduce` reads the state, and `idle` clobbers it."""
    return Effects(STATE if facts.attributes["reduce_cmd"] == "reduce" else (), STATE)


def reduces_with(*names: str) -> Rule:
    """`reduce_op` is one of `names`."""
    expected = f"one of {', '.join(names)}" if len(names) > 1 else names[0]

    def rule(facts: Facts) -> Violation | None:
        op = facts.attributes["reduce_op"]
        return None if op in names else wrong_operator("reduce_op", ALU[op], expected)

    return rule


def initial(name: str, only: bool = True) -> Rule:
    """load_reduce has a value `name` to load; if `only`, other commands take None or 0."""

    def rule(facts: Facts) -> Violation | None:
        command, value = facts.attributes["reduce_cmd"], facts.operands[name]
        if command == "load_reduce":
            return _no_value(name) if value is None else None
        if not only or value is None or (not isinstance(value, Tile) and value == 0):
            return None
        return Violation(
            "operand-missing",
            f"`{name}` is {shown(value)} and `reduce_cmd` is {command}, which does not load it",
            name,
            f"pass `reduce_cmd=nisa.reduce_cmd.load_reduce`, or leave out `{name}`",
        )

    return rule


def _no_value(name: str) -> Violation:
    return Violation(
        "operand-missing",
        f"`reduce_cmd` is load_reduce and `{name}` is None",
        name,
        f"pass the initial values of the accumulators as `{name}`",
    )


def nothing_to_read(facts: Facts) -> Violation | None:
    """`reduce_res` is not given with `idle`, which leaves the accumulators undefined."""
    if facts.attributes["reduce_cmd"] != "idle" or facts.operands["reduce_res"] is None:
        return None
    return Violation(
        "operand-missing",
        "`reduce_res` is given and `reduce_cmd` is idle, which leaves the accumulators unknown",
        "reduce_res",
        "pass `reduce_cmd=nisa.reduce_cmd.reset_reduce`, or leave out `reduce_res`",
    )


def stage(op: str, operand: str) -> Rule:
    """The operand of an operator with two inputs is given; with one input, it is None or 0."""

    def rule(facts: Facts) -> Violation | None:
        name, value = facts.attributes[op], facts.operands[operand]
        if ALU[name].arity == 2:
            return None if value is not None else _incomplete(op, name, operand, "is None")
        if value is None or (not isinstance(value, Tile) and value == 0):
            return None
        return _incomplete(op, f"{name}, which has one input,", operand, f"is {shown(value)}")

    return rule


def _incomplete(op: str, name: str, operand: str, text: str) -> Violation:
    expected = (
        f"pass `{operand}` as well" if text == "is None" else f"pass None or 0 as `{operand}`"
    )
    return Violation(
        "operand-missing", f"`{op}` is {name} and `{operand}` {text}", operand, expected
    )
