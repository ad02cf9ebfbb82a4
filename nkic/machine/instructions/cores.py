"""Rows that the physical cores of a kernel run together: each core waits for all others.

A row's `rendezvous_rule` checks the operands of all cores; `check` applies it to the program, and
the verifier of files applies it again. docs/architecture.md, cores, describes a rendezvous.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.clock import dma_costs
from nkic.machine.constraints import elementwise, same_dtype
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.parts import choice, result, source
from nkic.machine.memory import Buffer
from nkic.machine.operands import (
    SBUF,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Operand,
    Row,
    Violation,
)

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
            return Violation(
                "core-meeting",
                f"core_barrier: `cores` is {cores} in a kernel for {_cores(count)}",
                "cores",
                _advice(count, "`cores=(0, 1)`"),
            )
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


ROWS = (
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
        source="nki.isa.core_barrier",
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
        operands=(
            result(buffers=SBUF, packed=True),
            source("src", buffers=SBUF, packed=True),
        ),
        attributes=(
            *(_rank(name) for name in ("send_to_rank", "recv_from_rank", "pipe_id")),
            choice("dma_engine", "dma", "dma", "gpsimd_dma", since=Profile.NKI_0_3),
        ),
        engines=(Engine.DMA, Engine.GPSIMD),
        default_engine=swap_engine,
        cost=dma_costs.swapping,
        rules=(elementwise("dst", "src"), same_dtype("dst", "src"), known_ranks, small_enough),
        rendezvous_rule=swapped,
        generation=3,
        source="nki.isa.sendrecv",
    ),
)
