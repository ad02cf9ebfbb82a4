"""Building blocks of rows: recurring operands, attributes and rules."""

from __future__ import annotations

from typing import Any

from nkic.machine.constraints import all_int32
from nkic.machine.operands import Access, Attribute, AttributeKind, Facts, Operand, Rule, Violation
from nkic.machine.targets import Buffer, Engine

COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
REDUCE_COMMANDS = ("idle", "reset", "reduce", "reset_reduce", "load_reduce")
NOTHING: frozenset[Buffer] = frozenset()


def result(name: str = "dst", **properties: Any) -> Operand:
    return Operand(name, Access.WRITE, **properties)


def source(name: str, **properties: Any) -> Operand:
    return Operand(name, Access.READ, **properties)


def scalar(name: str, **properties: Any) -> Operand:
    """Return an operand that is a number or a tile with one element per partition."""
    return Operand(name, Access.READ, number=True, column=True, **properties)


def register(name: str, access: Access, **properties: Any) -> Operand:
    return Operand(name, access, buffers=NOTHING, register=True, **properties)


def alu(name: str = "op", **properties: Any) -> Attribute:
    return Attribute(name, AttributeKind.ALU, **properties)


def flag(name: str) -> Attribute:
    return Attribute(name, AttributeKind.BOOL, default=False)


def choice(name: str, default: str, *choices: str, **properties: Any) -> Attribute:
    """Return an attribute whose value is the name of a member of an enumeration of `nki.isa`."""
    return Attribute(name, AttributeKind.CHOICE, default=default, choices=choices, **properties)


def optional(name: str, kind: AttributeKind, **properties: Any) -> Attribute:
    """Return an attribute that defaults to None."""
    return Attribute(name, kind, default=None, optional=True, **properties)


def indirect_without(engine: Engine, instead: str) -> Rule:
    """No operand uses `.indirect()` on `engine` (`nki.isa`, tensor indirection)."""

    def rule(facts: Facts) -> Violation | None:
        indexed = [name for name, tile in facts.tiles.items() if tile.indexed]
        if facts.engine is not engine or not indexed:
            return None
        return Violation(
            "indexed-operand",
            f"`{indexed[0]}` uses `.indirect()`, which the {engine.value} engine does not "
            "support here",
            indexed[0],
            f"use `engine=nisa.engine.{instead}`",
        )

    return rule


def no_indirect_addresses(facts: Facts) -> Violation | None:
    """No operand uses `.indirect()` in address arithmetic (32-bit integers with a vector)."""
    indexed = [name for name, tile in facts.tiles.items() if tile.indexed]
    if not indexed or not all_int32(facts) or len(facts.tiles) < 3:
        return None
    return Violation(
        "indexed-operand",
        f"`{indexed[0]}` uses `.indirect()`, which arithmetic on 32-bit integers does not support",
        indexed[0],
        "copy the elements into a tile with `nisa.tensor_copy` first",
    )


def no_scatter_to_psum(facts: Facts) -> Violation | None:
    """The scalar engine scatters only into SBUF (`nki.isa.tensor_copy`, tensor indirection)."""
    dst = facts.tile("dst")
    if facts.engine is not Engine.SCALAR or not dst.indexed or dst.buffer is Buffer.SBUF:
        return None
    text = "`dst` is scattered into psum, which the scalar engine cannot do"
    hint = "scatter into a tile in SBUF, or use `engine=nisa.engine.vector`"
    return Violation("indexed-operand", text, "dst", hint)
