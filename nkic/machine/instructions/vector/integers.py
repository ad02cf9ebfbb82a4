"""Warnings for integer constants whose value tensor_scalar changes."""

from __future__ import annotations

from nkic.machine.constraints import all_int32
from nkic.machine.dtypes import DType
from nkic.machine.facts import Facts, Tile
from nkic.machine.instructions.vector.rules import inexact_constants
from nkic.machine.operands import Violation
from nkic.machine.operators import ALU

STAGES = (("op0", "operand0", "reverse0"), ("op1", "operand1", "reverse1"))


def changed_constants(facts: Facts, cores: int) -> Violation | None:
    """Warn of a constant that loses bits, shifts out every bit, or is rounded."""
    for op, name, reverse in STAGES:
        value, operator = facts.operands[name], ALU.get(facts.attributes[op])
        if type(value) is not int or operator is None or operator.arity != 2:
            continue
        data = facts.tile("data").dtype
        counts = operator.shifts and not facts.attributes[reverse]
        violation = _shifted_out(name, value, data) if counts else _cut(name, value, data)
        if violation is not None and (operator.group == "bitvec" or _in_integers(facts)):
            return violation
    return inexact_constants(facts, cores)


def _in_integers(facts: Facts) -> bool:
    """Return whether this is address arithmetic (a vector of integers), not float32."""
    operators = [facts.attributes[op] for op, _, _ in STAGES]
    vectors = any(isinstance(facts.operands[name], Tile) for _, name, _ in STAGES)
    exact = all(op is None or ALU[op].integers for op in operators)
    return vectors and exact and all_int32(facts)


def _shifted_out(name: str, count: int, data: DType) -> Violation | None:
    if 0 <= count < data.bits:
        return None
    return Violation(
        "shift-count",
        f"`{name}` is {count}, but elements of `data` have {data.bits} bits ({data.name}): every "
        "bit is shifted out, and the result is always 0",
        name,
        f"shift by 0 to {data.bits - 1}; for a negative count, shift the other way",
    )


def _cut(name: str, value: int, data: DType) -> Violation | None:
    lowest, highest = -(1 << data.bits - 1), (1 << data.bits) - 1
    if lowest <= value <= highest:
        return None
    return Violation(
        "constant-overflow",
        f"`{name}` is {value}, of which the {data.bits} bits of {data.name} hold the lowest only: "
        f"{value & highest}; they hold {lowest} to {highest}",
        name,
        f"use a constant from {lowest} to {highest}, or a wider type for `data`",
    )
