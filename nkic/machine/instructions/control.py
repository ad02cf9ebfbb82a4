"""Rows of the engines' sequencers: operations on registers.

Registers are numbered within the program. Every engine has its own copy of those it needs, so
these instructions run in the streams of all engines that read the register.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import elementwise, same_dtype
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions.parts import choice, register, result, source
from nkic.machine.operands import (
    SBUF,
    SBUF_OR_HBM,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Effects,
    Facts,
    Operand,
    Row,
    Rule,
    Violation,
)
from nkic.machine.targets import Buffer, Engine

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
    text = f"`src` is {src.dtype.name}, but a register takes an integer"
    hint = "convert it with `nisa.tensor_copy` into an nl.int32 tile first"
    return Violation("dtype-not-supported", text, "src", hint)


def of_scalar(name: str) -> Rule:
    """NKI 0.7 scalars are loaded from and stored to nl.int32 or nl.int64, without conversion."""

    def rule(facts: Facts) -> Violation | None:
        tile = facts.tile(name)
        if tile.dtype.name in WORDS or tile.elements != 1:
            return None  # several elements are another rule's
        text = f"`{name}` is {tile.dtype.name}, but a scalar is {' or '.join(WORDS)}"
        hint = f"make `{name}` an nl.int32 tile, and convert with `nisa.tensor_copy`"
        return Violation("dtype-not-supported", text, name, hint)

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
    ),
    Row(
        name="register_move",
        opcode=2,
        doc="dst = src: another register or an integer.",
        parameters=("dst", "src"),
        operands=(register("dst", Access.WRITE), register("src", Access.READ, number=True)),
        engines=SEQUENCERS,
        cost=costs.moving_register,
        rules=(whole_number,),
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


# ------------------------------------------------------------------------------------------------
# Rows that the physical cores of a kernel run together: each core waits for all others.
# A row's `rendezvous_rule` checks the operands of all cores; `check` applies it to the program,
# and the verifier of files applies it again. docs/decisions.md, 10, describes a rendezvous.

SHARED = frozenset({Buffer.SHARED_HBM})
COMPUTING = (Engine.GPSIMD, Engine.SYNC, Engine.TENSOR, Engine.VECTOR, Engine.SCALAR)
GPSIMD_DMA_BYTES = {4: 1024, 2: 512, 1: 256}  # per partition, by the size of an element
SWAP = (1, 0)


def names_cores(facts: Facts) -> Violation | None:
    """`cores` is (0, 1). (0,) is a barrier of one core, which waits for no other (assumed)."""
    cores = facts.attributes["cores"]
    if cores in ((0, 1), (0,)):
        return None
    text = f"`cores` is {cores}, but only (0, 1) is supported"
    return Violation("core-meeting", text, "cores", "pass `cores=(0, 1)`")


def barrier_of_all(parties: Sequence[Facts]) -> Violation | None:
    """Every core of the kernel takes part."""
    count = len(parties)
    for facts in parties:
        cores = facts.attributes["cores"]
        if cores != tuple(range(count)):
            text = f"core_barrier: `cores` is {cores} in a kernel for {_cores(count)}"
            return Violation("core-meeting", text, "cores", _advice(count, "`cores=(0, 1)`"))
    return None


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _advice(count: int, expected: str) -> str:
    if count == 1:
        return "launch the kernel on 2 cores, or skip this instruction if nl.num_programs() is 1"
    return f"pass {expected} on both"


def known_ranks(facts: Facts) -> Violation | None:
    """Ranks within a logical core are 0 and 1, and pipes are counted from 0."""
    for name in ("send_to_rank", "recv_from_rank"):
        if (rank := facts.attributes[name]) not in (0, 1):
            text = f"`{name}` is {rank}, but must be 0 or 1"
            return Violation("core-meeting", text, name, f"pass 1 - nl.program_id(0) as `{name}`")
    if (pipe := facts.attributes["pipe_id"]) < 0:
        text = f"`pipe_id` is {pipe}, but must not be negative"
        return Violation("core-meeting", text, "pipe_id", "pass `pipe_id=0`")
    return None


def small_enough(facts: Facts) -> Violation | None:
    """The tile fits into one swap of the gpsimd engine's own DMA."""
    if facts.attributes["dma_engine"] != "gpsimd_dma":
        return None
    tile = facts.tile("src")
    limit = GPSIMD_DMA_BYTES.get(tile.dtype.size, max(GPSIMD_DMA_BYTES.values()))
    size = tile.free * tile.dtype.size
    if size <= limit:
        return None
    return Violation(
        "core-meeting",
        f"`src` has {size:,} bytes per partition; gpsimd_dma swaps at most {limit:,} for "
        f"{tile.dtype.name}",
        "src",
        "use dma_engine=nisa.dma_engine.dma, or swap smaller tiles",
    )


def swapped(parties: Sequence[Facts]) -> Violation | None:
    """Each core sends what the other expects: the same shape, type, pipe and DMA engine."""
    if len(parties) != len(SWAP):
        text = f"sendrecv: the kernel is for {_cores(len(parties))}, but sendrecv needs 2"
        return Violation("core-meeting", text, help=_advice(len(parties), "rank 0 or 1"))
    sends = [facts.attributes["send_to_rank"] for facts in parties]
    receives = [facts.attributes["recv_from_rank"] for facts in parties]
    for core, target in enumerate(sends):
        if receives[target] != core:
            return Violation(
                "core-meeting",
                f"sendrecv: core {core} sends to core {target}, which receives from core "
                f"{receives[target]}",
                "send_to_rank",
                "pass 1 - nl.program_id(0) as both ranks on both cores",
            )
    return _differing(parties)


def _differing(parties: Sequence[Facts]) -> Violation | None:
    first, second = parties
    for name in ("pipe_id", "dma_engine"):
        first_value, second_value = first.attributes[name], second.attributes[name]
        if first_value != second_value:
            text = f"sendrecv: `{name}` is {first_value} on core 0 and {second_value} on core 1"
            return Violation("core-meeting", text, name, f"pass the same `{name}` on both cores")
    first_tile, second_tile = first.tile("src"), second.tile("src")
    shapes = [(t.dtype, t.partitions, t.free) for t in (first_tile, second_tile)]
    if shapes[0] == shapes[1]:
        return None
    text = f"sendrecv: core 0 sends {first_tile} and core 1 {second_tile}"
    return Violation("core-meeting", text, "src", "swap tiles of the same shape and type")


def swap_engine(facts: Facts) -> Engine:
    """Return the engine that moves the data: gpsimd itself, or the DMA engines."""
    return Engine.GPSIMD if facts.attributes["dma_engine"] == "gpsimd_dma" else Engine.DMA


def _rank(name: str) -> Attribute:
    return Attribute(name, AttributeKind.INT)


CORE_ROWS = (
    Row(
        name="core_barrier",
        opcode=120,
        doc="Waits until every core reaches it. On all cores, accesses to data before it complete "
        "before any access to data after it begins.",
        parameters=("data", "cores", "engine", "name"),
        operands=(Operand("data", Access.ORDER, SHARED, packed=True, wide=True),),
        attributes=(Attribute("cores", AttributeKind.INTS),),
        engines=COMPUTING,
        cost=costs.core_barrier,
        rules=(names_cores,),
        rendezvous_rule=barrier_of_all,
        generation=3,
    ),
    Row(
        name="sendrecv",
        opcode=121,
        queue="pipe_id",
        depends=Depends.ELEMENTWISE,
        doc="dst = src of core recv_from_rank, while src is sent to core send_to_rank.",
        parameters=(
            *("src", "dst", "send_to_rank", "recv_from_rank", "pipe_id", "dma_engine", "name"),
        ),
        operands=(result(buffers=SBUF, packed=True), source("src", buffers=SBUF, packed=True)),
        attributes=(
            *(_rank(name) for name in ("send_to_rank", "recv_from_rank", "pipe_id")),
            choice("dma_engine", "dma", "dma", "gpsimd_dma", since=Profile.NKI_0_3),
        ),
        engines=(Engine.DMA, Engine.GPSIMD),
        default_engine=swap_engine,
        cost=costs.swapping,
        rules=(elementwise("dst", "src"), same_dtype("dst", "src"), known_ranks, small_enough),
        rendezvous_rule=swapped,
        generation=3,
    ),
)


# ---- Rows of the debug stream: output of a running program --------------------------------------

STREAM = ("debug.stream",)


def printing(facts: Facts) -> Effects:
    """Order the prints of a core by program order."""
    return Effects(STREAM, STREAM)


DEBUG_ROWS = (
    Row(
        name="device_print",
        opcode=250,
        doc="Prints a string and the current values of a tensor.",
        parameters=("print_prefix", "tensor"),
        # The output shows the dimensions as the kernel wrote them.
        operands=(source("tensor", buffers=SBUF_OR_HBM, keep_rank=True, max_dims=8, packed=True),),
        attributes=(Attribute("print_prefix", AttributeKind.TEXT),),
        engines=(Engine.DMA,),
        cost=costs.dma_printing,
        effects=printing,
        module="nki.language",
    ),
)
