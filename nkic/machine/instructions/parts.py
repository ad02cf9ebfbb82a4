"""The parts that rows are put together from: operands and attributes that recur."""

from __future__ import annotations

from typing import Any

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.memory import Buffer
from nkic.machine.operands import Access, Attribute, Kind, Operand, Violation

COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
REDUCE_COMMANDS = ("idle", "reset", "reduce", "reset_reduce", "load_reduce")
NOTHING: frozenset[Buffer] = frozenset()


def result(name: str = "dst", **more: Any) -> Operand:
    """A tile that the instruction writes."""
    return Operand(name, Access.WRITE, **more)


def source(name: str, **more: Any) -> Operand:
    """A tile that the instruction reads."""
    return Operand(name, Access.READ, **more)


def scalar(name: str, **more: Any) -> Operand:
    """A number, or a tile with one element per partition in its place."""
    return Operand(name, Access.READ, number=True, column=True, **more)


def register(name: str, access: Access, **more: Any) -> Operand:
    """A register."""
    return Operand(name, access, buffers=NOTHING, register=True, **more)


def alu(name: str = "op", **more: Any) -> Attribute:
    """An operator of the arithmetic units."""
    return Attribute(name, Kind.ALU, **more)


def flag(name: str) -> Attribute:
    """False unless given."""
    return Attribute(name, Kind.BOOL, default=False)


def choice(name: str, default: str, *choices: str) -> Attribute:
    """A member of an enumeration of `nki.isa`, by its name there."""
    return Attribute(name, Kind.CHOICE, default=default, choices=choices)


def optional(name: str, kind: Kind) -> Attribute:
    """None unless given."""
    return Attribute(name, kind, default=None, optional=True)


def no_scatter_to_psum(facts: Facts) -> Violation | None:
    """The scalar engine scatters into SBUF only (`nki.isa.tensor_copy`, tensor indirection)."""
    dst = facts.tile("dst")
    if facts.engine is not Engine.SCALAR or not dst.indexed or dst.buffer is Buffer.SBUF:
        return None
    return Violation(
        "indexed-operand",
        "`dst` is scattered into psum, which the scalar engine cannot do",
        "dst",
        "scatter into a tile in SBUF, or use `engine=nisa.engine.vector`",
    )
