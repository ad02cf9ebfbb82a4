"""Rows of the engines' sequencers: registers.

Registers are numbered within the program; every engine keeps its own copy of those it needs,
so an instruction here runs in the streams of all engines that read the register.
"""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.dtypes import DTYPES
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.parts import choice, register, result, source
from nkic.machine.operands import SBUF_OR_HBM, Access, Row, Rule, Violation, always

WORDS = ("int32", "int64")  # of scalars
SEQUENCERS = (Engine.SYNC, Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)


def one_word(name: str) -> Rule:
    """A tensor of exactly one element."""

    def rule(facts: Facts) -> Violation | None:
        tile = facts.tile(name)
        if tile.elements == 1:
            return None
        text = f"`{name}` has {tile.elements} elements, but must have 1"
        return Violation("operand-shape", text, name, f"slice one element out of `{name}`")

    return rule


def integer_source(facts: Facts) -> Violation | None:
    """A register holds an integer, and takes what it loads as one."""
    src = facts.tile("src")
    if src.dtype.is_integer or src.dtype.kind == "bool" or src.elements != 1:
        return None  # several elements are another rule's
    return Violation(
        "dtype-not-supported",
        f"`src` is {src.dtype.name}, but a register takes an integer",
        "src",
        "convert it with `nisa.tensor_copy` into an nl.int32 tile first",
    )


def of_scalar(name: str) -> Rule:
    """A scalar of NKI 0.7 is loaded from nl.int32 or nl.int64, and stored there: not converted."""

    def rule(facts: Facts) -> Violation | None:
        tile = facts.tile(name)
        if tile.dtype.name in WORDS or tile.elements != 1:
            return None  # several elements are another rule's
        return Violation(
            "dtype-not-supported",
            f"`{name}` is {tile.dtype.name}, but a scalar is {' or '.join(WORDS)}",
            name,
            f"make `{name}` an nl.int32 tile, and convert with `nisa.tensor_copy`",
        )

    return rule


def word_of_scalar(facts: Facts) -> Violation | None:
    """A number that a scalar is computed with is an int of as many bits, with sign."""
    bits = DTYPES[facts.attributes["integer"]].bits
    for name in ("a", "b"):
        value = facts.operands[name]
        fits = not isinstance(value, int | float) or (
            isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1
        )
        if not fits:
            text = f"`{name}` is {value}; the scalar has {bits} bits with sign"
            return Violation("argument-kind", text, name, f"pass a {bits}-bit int")
    return None


def whole_number(facts: Facts) -> Violation | None:
    """An immediate is an int of 32 bits."""
    value = next(v for k, v in facts.operands.items() if k in ("src", "x"))
    if not isinstance(value, int | float) or (
        isinstance(value, int) and -(1 << 31) <= value < 1 << 32
    ):
        return None
    return Violation(
        "argument-kind",
        f"the value is {value}; a register holds a 32-bit integer",
        help="pass an int from -2147483648 to 4294967295",
    )


# The last version whose `register_alloc` fills the register from a tensor: release notes 0.2.0
# (Neuron 2.28) have it, the guide of 0.6 says "not a tensor"; nothing is said of those between.
FILLED = Profile.NKI_0_5

ROWS = (
    Row(
        name="register_alloc",
        opcode=1,
        loads_until=FILLED,
        doc="Makes a register, holding x if it is given.",
        parameters=("x",),
        operands=(
            register("dst", Access.WRITE),
            register("x", Access.READ, number=True, optional=True, default=None),
        ),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.moving_register,
        rules=(whole_number,),
        returns="dst",
        source="nki.isa.register_alloc",
    ),
    Row(
        name="register_move",
        opcode=2,
        doc="dst = src: another register or an integer.",
        parameters=("dst", "src"),
        operands=(
            register("dst", Access.WRITE),
            register("src", Access.READ, number=True),
        ),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.moving_register,
        rules=(whole_number,),
        source="nki.isa.register_move",
    ),
    Row(
        name="register_load",
        opcode=3,
        doc="dst, a register, takes the only element of src.",
        parameters=("dst", "src"),
        operands=(register("dst", Access.WRITE), source("src", buffers=SBUF_OR_HBM)),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.accessing_register,
        rules=(one_word("src"), integer_source),
        source="nki.isa.register_load",
    ),
    Row(
        name="register_store",
        opcode=4,
        doc="The only element of dst takes src, a register.",
        parameters=("dst", "src"),
        operands=(result(buffers=SBUF_OR_HBM), register("src", Access.READ)),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.accessing_register,
        rules=(one_word("dst"),),
        source="nki.isa.register_store",
    ),
    Row(
        name="scalar_load",
        opcode=5,
        doc="Returns the only element of src as a scalar.",
        parameters=("src",),
        operands=(register("dst", Access.WRITE), source("src", buffers=SBUF_OR_HBM, wide=True)),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.accessing_register,
        rules=(one_word("src"), of_scalar("src")),
        since=Profile.NKI_0_7,
        returns="dst",
        source="nki.isa.scalar_load",
        scalars=True,
    ),
    Row(
        name="scalar_store",
        opcode=6,
        doc="The only element of dst takes value, a scalar.",
        parameters=("dst", "value"),
        operands=(result(buffers=SBUF_OR_HBM, wide=True), register("value", Access.READ)),
        attributes=(),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.accessing_register,
        rules=(one_word("dst"), of_scalar("dst")),
        since=Profile.NKI_0_7,
        source="nki.isa.scalar_store",
        scalars=True,
    ),
    Row(
        name="scalar_compute",
        opcode=7,
        doc="dst = a op b, both of the type integer, wrapping around: an operator of scalars.",
        parameters=("dst", "a", "b", "op", "integer"),
        operands=(
            register("dst", Access.WRITE),
            register("a", Access.READ, number=True),
            register("b", Access.READ, number=True),
        ),
        attributes=(
            choice("op", "add", "add", "subtract", "multiply"),
            choice("integer", "int32", *WORDS),
        ),
        engines=SEQUENCERS,
        choose=always(Engine.SYNC),
        cost=costs.moving_register,
        rules=(word_of_scalar,),
        since=Profile.NKI_0_7,
        source="nki.isa.NkiScalar",
        module="nki.isa.NkiScalar",
    ),
)

# What loops and the oldest `register_alloc` are made of.
MOVE = next(row for row in ROWS if row.name == "register_move")
LOAD = next(row for row in ROWS if row.name == "register_load")
