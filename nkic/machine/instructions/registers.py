"""Rows of the engines' sequencers: operations on registers.

Registers are numbered within the program. Every engine has its own copy of those it needs, so
these instructions run in the streams of all engines that read the register.
"""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.dtypes import DTYPES
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.parts import choice, register, result, source
from nkic.machine.operands import SBUF_OR_HBM, Access, Row, Rule, Violation

WORDS = ("int32", "int64")  # of scalars
SEQUENCERS = (Engine.SYNC, Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)


def one_word(name: str) -> Rule:
    """The tensor has exactly one element."""

    def rule(facts: Facts) -> Violation | None:
        tile = facts.tile(name)
        if tile.elements == 1:
            return None
        text = f"`{name}` has {tile.elements} elements, but must have 1"
        return Violation("operand-shape", text, name, f"slice one element out of `{name}`")

    return rule


def integer_source(facts: Facts) -> Violation | None:
    """The source of a register, which holds an integer, is an integer tensor."""
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
    """NKI 0.7 scalars are loaded from and stored to nl.int32 or nl.int64, without conversion."""

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
    """A number combined with a scalar is a signed int that fits in its bits."""
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
    """An immediate is a 32-bit int."""
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
# (Neuron 2.28) describe it, the guide of 0.6 says "not a tensor"; the versions between are silent.
FILLED = Profile.NKI_0_5

ROWS = (
    Row(
        name="register_alloc",
        opcode=1,
        loads_until=FILLED,
        doc="Creates a register, initialised to x if given.",
        parameters=("x",),
        operands=(
            register("dst", Access.WRITE),
            register("x", Access.READ, number=True, optional=True, default=None),
        ),
        engines=SEQUENCERS,
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
        engines=SEQUENCERS,
        cost=costs.moving_register,
        rules=(whole_number,),
        source="nki.isa.register_move",
    ),
    Row(
        name="register_load",
        opcode=3,
        doc="Loads the single element of src into the register dst.",
        parameters=("dst", "src"),
        operands=(register("dst", Access.WRITE), source("src", buffers=SBUF_OR_HBM)),
        engines=SEQUENCERS,
        cost=costs.accessing_register,
        rules=(one_word("src"), integer_source),
        source="nki.isa.register_load",
    ),
    Row(
        name="register_store",
        opcode=4,
        doc="Stores the register src in the single element of dst.",
        parameters=("dst", "src"),
        operands=(result(buffers=SBUF_OR_HBM), register("src", Access.READ)),
        engines=SEQUENCERS,
        cost=costs.accessing_register,
        rules=(one_word("dst"),),
        source="nki.isa.register_store",
    ),
    Row(
        name="scalar_load",
        opcode=5,
        doc="Returns the single element of src as a scalar.",
        parameters=("src",),
        operands=(register("dst", Access.WRITE), source("src", buffers=SBUF_OR_HBM, wide=True)),
        engines=SEQUENCERS,
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
        doc="Stores the scalar value in the single element of dst.",
        parameters=("dst", "value"),
        operands=(result(buffers=SBUF_OR_HBM, wide=True), register("value", Access.READ)),
        engines=SEQUENCERS,
        cost=costs.accessing_register,
        rules=(one_word("dst"), of_scalar("dst")),
        since=Profile.NKI_0_7,
        source="nki.isa.scalar_store",
        scalars=True,
    ),
    Row(
        name="scalar_compute",
        opcode=7,
        doc="dst = a op b, on scalars of the type integer, which wrap around.",
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
        cost=costs.moving_register,
        rules=(word_of_scalar,),
        since=Profile.NKI_0_7,
        source="nki.isa.NkiScalar",
        module="nki.isa.NkiScalar",
    ),
)

# Used by loops and by the oldest `register_alloc`.
MOVE = next(row for row in ROWS if row.name == "register_move")
LOAD = next(row for row in ROWS if row.name == "register_load")
