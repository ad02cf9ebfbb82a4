"""Rows of the vector engine that find 8 values in each partition, or move partitions."""

from __future__ import annotations

from nkic.machine import costs
from nkic.machine.constraints import elements, elementwise, exactly, same_dtype, same_partitions
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.parts import result, source
from nkic.machine.operands import Access, Attribute, AttributeKind, Depends, Row, Violation
from nkic.machine.tiles import start_partitions

VECTOR = (Engine.VECTOR,)
INDICES = frozenset({"uint16", "uint32"})
LONGEST = 16_384  # elements per partition in a search
QUADRANT = 32  # partitions within which a shuffle moves data
KEEP = 255  # in a shuffle mask: leave the partition unchanged

SEARCH = (
    elements("data", 8, LONGEST),
    exactly("vals", 8, "the values to find"),
)


def same_length(facts: Facts) -> Violation | None:
    """Partitions have the same length; their numbers may differ."""
    dst, src = facts.tile("dst"), facts.tile("src")
    if dst.free == src.free:
        return None
    return Violation(
        "element-count-mismatch",
        f"`src` has {src.free} elements per partition and `dst` has {dst.free}; they must be equal",
        "src",
        f"slice or broadcast `src` to {dst.free} elements per partition",
    )


def shuffle_mask(facts: Facts) -> Violation | None:
    """The mask has 32 entries, each 255 or a partition of the quadrant that src has."""
    mask, src, dst = facts.attributes["shuffle_mask"], facts.tile("src"), facts.tile("dst")
    if len(mask) != QUADRANT:
        return _bad_mask(
            f"has {len(mask)} entries, but must have {QUADRANT}",
            f"pass one entry for each of the {QUADRANT} partitions of a quadrant",
        )
    for index, entry in enumerate(mask):
        if entry != KEEP and not 0 <= entry < QUADRANT:
            return _bad_mask(
                f"has {entry} at {index}; entries are 0 to {QUADRANT - 1}, or {KEEP}",
                f"use {KEEP} for partitions that must not change",
            )
    for partition in range(dst.partitions):
        entry = mask[partition % QUADRANT]
        source = partition - partition % QUADRANT + entry
        if entry != KEEP and source >= src.partitions:
            return _bad_mask(
                f"copies partition {source} of `src`, which has {src.partitions}, to partition "
                f"{partition} of `dst`",
                "use several instructions, one for each quadrant of `dst`",
            )
    return None


def _bad_mask(text: str, hint: str) -> Violation:
    return Violation("shuffle-mask", f"`shuffle_mask` {text}", "shuffle_mask", hint)


def shuffled_starts(facts: Facts) -> Violation | None:
    """src and dst start at a partition allowed for the longer one."""
    longer = max(facts.tile("src").partitions, facts.tile("dst").partitions)
    allowed = start_partitions(longer)
    for name in ("src", "dst"):
        tile = facts.tile(name)
        if tile.start not in allowed:
            return Violation(
                "start-partition",
                f"`{name}` starts at partition {tile.start}; where `src` or `dst` has {longer} "
                f"partitions it must start at {' or '.join(map(str, allowed))}",
                name,
                "use several instructions, one for each quadrant",
            )
    return None


def shuffled_access(name: str, facts: Facts) -> Access | None:
    """Return UPDATE for a dst that keeps partitions: they must have been written before."""
    return Access.UPDATE if name == "dst" and KEEP in facts.attributes["shuffle_mask"] else None


ROWS = (
    Row(
        name="nc_find_index8",
        opcode=56,
        depends=Depends.BY_PARTITION,
        doc="The index in each partition of data of each of the 8 vals: equal ones match the "
        "first, the second … occurrence; all bits set if there is none.",
        parameters=("dst", "data", "vals", "name"),
        operands=(
            result(dtypes=INDICES, max_rank=2),
            source("data", max_rank=3),
            source("vals", max_rank=3),
        ),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            same_partitions("dst", "data", "vals"),
            *SEARCH,
            exactly("dst", 8, "an index for each value"),
        ),
        source="nki.isa.nc_find_index8; nki.isa.nc_match_replace8 (equal values)",
    ),
    Row(
        name="nc_match_replace8",
        opcode=57,
        depends=Depends.BY_PARTITION,
        doc="dst = data with the first occurrence of each of the 8 vals replaced by imm; dst_idx "
        "= their indices: of equal vals, the last one takes the first occurrence.",
        parameters=("dst", "data", "vals", "imm", "dst_idx", "name"),
        operands=(
            result(),
            source("data", max_dims=2),
            source("vals", max_dims=2),
            result("dst_idx", dtypes=INDICES, max_dims=1, optional=True, default=None),
        ),
        attributes=(Attribute("imm", AttributeKind.NUMBER, into="dst"),),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "vals", "dst_idx"),
            *SEARCH,
            exactly("dst_idx", 8, "an index for each value"),
        ),
        source="nki.isa.nc_match_replace8",
    ),
    Row(
        name="nc_stream_shuffle",
        opcode=58,
        depends=Depends.SHUFFLED,
        doc="In each quadrant of 32 partitions, partition i of dst = partition shuffle_mask[i] of "
        "src; 255 leaves it unchanged.",
        parameters=("dst", "src", "shuffle_mask", "name"),
        operands=(result(packed=True), source("src", packed=True)),
        attributes=(Attribute("shuffle_mask", AttributeKind.INTS),),
        engines=VECTOR,
        cost=costs.per_element("src"),
        rules=(
            same_dtype("dst", "src"),
            same_length,
            shuffled_starts,
            shuffle_mask,
        ),
        access=shuffled_access,
        source="nki.isa.nc_stream_shuffle",
    ),
)
