"""Rows of `nki.collectives`: what ranks, each a kernel of its own, do together.

One row instance moves one tensor: lists of tensors and channels become several instances
(`language/collectives.py`). It is a rendezvous of all cores of all ranks of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.clock import dma_costs
from nkic.machine.constraints import elementwise, same_dtype, wrong_operator
from nkic.machine.costs import Formula
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions import connectivity
from nkic.machine.instructions.dma import PRIORITY
from nkic.machine.instructions.dma_rules import computed_types, priority
from nkic.machine.instructions.parts import alu, flag, register, result, source
from nkic.machine.operands import (
    HBM,
    SBUF_OR_HBM,
    Access,
    Attribute,
    AttributeKind,
    Operand,
    Row,
    Rule,
    Violation,
    always,
    no_access,
)
from nkic.machine.operators import ALU

MODULE = "nki.collectives"
SLUG = "collective"
METADATA = "metadata_tensor"
REDUCTIONS = ("add", "minimum", "maximum")
MAX_CHANNELS = 4
CHIP_RANKS = 4  # ranks of two cores on one chip
GROUPS = Attribute("replica_group", AttributeKind.GROUPS)
DIMENSION = Attribute("collective_dim", AttributeKind.INT)
CHANNEL = Attribute("channel_id", AttributeKind.INT, default=0)


def group_size(facts: Facts) -> int:
    """How many ranks take part in one group."""
    found = facts.attributes["replica_group"]
    return max(1, len(found[0])) if found else 1


def groups(facts: Facts) -> Violation | None:
    """Groups of equal size; no rank is in two."""
    found = facts.attributes["replica_group"]
    if not found or not all(found):
        text = "`replica_group` has no ranks"
    elif len({len(group) for group in found}) > 1:
        sizes = ", ".join(str(len(group)) for group in found)
        text = f"the groups of `replica_group` have {sizes} ranks; they must be equally large"
    elif len({*chain(*found)}) < sum(map(len, found)):
        text = "a rank is twice in `replica_group`; groups must not overlap"
    elif min(chain(*found)) < 0:
        text = f"`replica_group` has the rank {min(chain(*found))}; ranks count from 0"
    else:
        return None
    hint = "pass ReplicaGroup([[0, 1, …]]) with each rank in one list"
    return Violation(SLUG, text, "replica_group", hint)


def same_memory(facts: Facts) -> Violation | None:
    """All in HBM or all in SBUF."""
    tiles = {name: t for name, t in facts.tiles.items() if name != METADATA}
    if len({tile.on_chip for tile in tiles.values()}) == 1:
        return None
    places = ", ".join(f"`{name}` in {tile.buffer.value}" for name, tile in tiles.items())
    text = f"{places}: all must be in HBM, or all in SBUF"
    return Violation(SLUG, text, "dst", "copy one with nisa.dma_copy first")


def flat(facts: Facts) -> Violation | None:
    """Tiles in SBUF have one free dimension."""
    for name, tile in facts.tiles.items():
        if name != METADATA and tile.on_chip and sum(num > 1 for _, num in tile.dims) > 1:
            return Violation(
                "operand-shape",
                f"`{name}` is {list(tile.shape)} in sbuf, where collectives take [partitions, "
                "elements]",
                name,
                f"make `{name}` 2-dimensional: [{tile.partitions}, {tile.free}]",
            )
    return None


def same_shape(*names: str) -> Rule:
    """As `elementwise`, of tiles in one memory."""
    fits = elementwise("dst", *names)
    return lambda facts: None if same_memory(facts) else fits(facts)


def dimension(in_sbuf: tuple[int, ...]) -> Rule:
    """`collective_dim` is 0 in HBM, one of `in_sbuf` in SBUF."""

    def rule(facts: Facts) -> Violation | None:
        wanted = in_sbuf if facts.tile("src").on_chip else (0,)
        dim = facts.attributes["collective_dim"]
        if dim in wanted:
            return None
        names = " or ".join(map(str, wanted))
        text = f"`collective_dim` is {dim}, but must be {names} here"
        return Violation(SLUG, text, "collective_dim", f"pass {names}")

    return rule


def sizes(src: int, dst: int) -> Rule:
    """dst has `src` / `dst` times the elements of src, where 0 stands for the ranks of a group."""

    def rule(facts: Facts) -> Violation | None:
        count = group_size(facts) if "replica_group" in facts.attributes else 1
        times = (src or count, dst or count)
        for name, tile in facts.tiles.items():
            wanted, rest = divmod(tile.elements * times[0], times[1])
            if name != "dst" and not rest and wanted != facts.tile("dst").elements:
                return _wrong_size(facts, name, wanted)
        return None

    return rule


def _wrong_size(facts: Facts, name: str, wanted: int) -> Violation:
    tile, dst = facts.tile(name), facts.tile("dst")
    return Violation(
        "element-count-mismatch",
        f"`{name}` has {tile.elements} elements {list(tile.shape)} and `dst` has {dst.elements} "
        f"{list(dst.shape)}, but must have {wanted}",
        "dst",
        "make the first dimension of `dst` as many times larger as there are ranks, or smaller",
    )


def splits(facts: Facts) -> Violation | None:
    """src falls into as many parts as the group has ranks."""
    tile, count = facts.tile("src"), group_size(facts)
    first = tile.partitions if tile.on_chip else 0
    if (first or tile.elements) % count == 0:
        return None
    text = f"`src` has {first or tile.elements} parts, which {count} ranks cannot share equally"
    return Violation(SLUG, text, "src", f"pad `src` to a multiple of {count}")


def gathered(facts: Facts) -> Violation | None:
    """In SBUF the dimension that is not gathered stays as it is."""
    dst, src, count = facts.tile("dst"), facts.tile("src"), group_size(facts)
    if not src.on_chip:
        return None
    along = facts.attributes["collective_dim"]
    wanted = (src.partitions * (1 if along else count), src.free * (count if along else 1))
    if (dst.partitions, dst.free) == wanted:
        return None
    text = f"`dst` is {list(dst.shape)}, but must be {list(wanted)}"
    hint = f"allocate `dst` as [{wanted[0]}, {wanted[1]}]"
    return Violation("element-count-mismatch", text, "dst", hint)


def reduction(facts: Facts) -> Violation | None:
    """`op` is add, minimum or maximum."""
    op = facts.attributes["op"]
    return None if op in REDUCTIONS else wrong_operator("op", ALU[op], ", ".join(REDUCTIONS))


def pairs(facts: Facts) -> Violation | None:
    """`source_target_pairs` are pairs; no rank sends twice, none receives twice."""
    found = facts.attributes["source_target_pairs"]
    if not found or any(len(pair) != 2 for pair in found):
        text = "`source_target_pairs` must be a list of pairs (source, target)"
    elif any(rank < 0 for pair in found for rank in pair):
        text = "`source_target_pairs` has a negative rank"
    elif any(len({pair[side] for pair in found}) < len(found) for side in (0, 1)):
        text = "a rank is twice a source, or twice a target, in `source_target_pairs`"
    else:
        return None
    hint = "pass each rank at most once as source and once as target"
    return Violation(SLUG, text, "source_target_pairs", hint)


def channel(facts: Facts) -> Violation | None:
    """There are four channels at most."""
    found = facts.attributes["channel_id"]
    if 0 <= found < MAX_CHANNELS:
        return None
    text = f"the channel is {found}; there are {MAX_CHANNELS}, counted from 0"
    return Violation(SLUG, text, "channel_id", "use fewer channels, counted from 0")


def metadata(facts: Facts) -> Violation | None:
    """Rows of counts and displacements, one column for each rank; in SBUF in one partition."""
    tile, rows = facts.tile(METADATA), 3 + facts.attributes["has_rdispls"]
    count = rows * group_size(facts)
    if tile.elements == count and tile.partitions <= 1:
        return None
    text = f"`metadata_tensor` is {list(tile.shape)}, but must be [{rows}, {group_size(facts)}]"
    hint = f"allocate it as [{rows}, {group_size(facts)}] in HBM, or with a 1 in front in SBUF"
    return Violation(SLUG, text, METADATA, hint)


def slots(facts: Facts) -> Violation | None:
    """dst falls into as many slots as there are ranks."""
    dst, count = facts.tile("dst"), group_size(facts)
    if dst.elements % count == 0:
        return None
    text = f"`dst` has {dst.elements} elements, which do not make {count} equal slots"
    return Violation(SLUG, text, "dst", f"pad `dst` to a multiple of {count} elements")


def displaced(facts: Facts) -> Violation | None:
    """`has_rdispls` needs a switch between devices, which trn3 has."""
    if not facts.attributes["has_rdispls"] or facts.target.generation >= connectivity.SWITCHED:
        return None
    text = f"`has_rdispls` needs trn3; the target is {facts.target.name}"
    return Violation("needs-newer-target", text, "has_rdispls", "leave it out")


def never_displaced(facts: Facts) -> Violation | None:
    """all_gather_v: chunks lie in equal slots."""
    if not facts.attributes["has_rdispls"]:
        return None
    text = "`has_rdispls=True` is not supported by all_gather_v"
    return Violation(SLUG, text, "has_rdispls", "leave it out: chunks lie in equal slots")


def of_one_chip(facts: Facts) -> Violation | None:
    """all_gather_v: each group has four ranks."""
    if group_size(facts) == CHIP_RANKS:
        return None
    text = f"a group has {group_size(facts)} ranks; all_gather_v needs exactly {CHIP_RANKS}"
    return Violation(
        SLUG, text, "replica_group", f"use groups of {CHIP_RANKS} ranks, or all_gather"
    )


def ring_step(facts: Facts) -> Violation | None:
    """Iterations count from 0."""
    if (found := facts.attributes["iteration_id"]) >= 0:
        return None
    text = f"`iteration_id` is {found}, but must not be negative"
    return Violation(SLUG, text, "iteration_id", "count ring steps from 0")


def alike(parties: Sequence[Facts]) -> Violation | None:
    """All cores of a rank ask for the same."""
    first = parties[0].attributes
    for facts in parties[1:]:
        for name, value in facts.attributes.items():
            if value != first[name]:
                text = f"`{name}` is {first[name]} on core 0 and {value} on core 1"
                return Violation("core-meeting", text, name, f"pass the same `{name}` on all cores")
    return None


def two_cores(parties: Sequence[Facts]) -> Violation | None:
    """all_gather_v needs ranks of two cores."""
    if len(parties) == 2:
        return alike(parties)
    text = f"all_gather_v: a rank has {len(parties)} core; it needs 2"
    return Violation("core-meeting", text, help="launch the kernel on 2 cores, or use all_gather")


once_around = dma_costs.around_ring(1)


def _row(
    name: str,
    opcode: int,
    doc: str,
    operands: tuple[Operand, ...],
    attributes: tuple[Attribute, ...],
    rules: tuple[Rule, ...],
    *,
    rendezvous_rule: Callable[[Sequence[Facts]], Violation | None] = alike,
    access: Callable[[str, Facts], Access | None] = no_access,
    cost: Formula = once_around,
    since: Profile = Profile.BETA2,
    warn: Callable[[Facts, int], Violation | None] | None = None,
    coalesces: bool = False,
) -> Row:
    """A row with what all that move data have."""
    tiles = [o.name for o in operands if o.name != METADATA]
    others = [o.name for o in operands if o.name == METADATA] + [a.name for a in attributes[1:]]
    return Row(
        name=name,
        opcode=opcode,
        doc=doc,
        parameters=(*tiles, attributes[0].name, *others, "priority", "name"),
        operands=operands,
        attributes=(*attributes, PRIORITY),
        engines=(Engine.DMA,),
        choose=always(Engine.DMA),
        cost=cost,
        rules=(*((groups,) if GROUPS in attributes else ()), flat, *rules, priority),
        access=access,
        rendezvous_rule=rendezvous_rule,
        warn=warn,
        coalesces=coalesces,
        channel=CHANNEL.name if CHANNEL in attributes else "",
        since=since,
        module=MODULE,
        source=f"{MODULE}.{name}",
    )


def _register_row(name: str, opcode: int, doc: str, *attributes: Attribute) -> Row:
    """A row that tells a register which rank it is on."""
    return Row(
        name=name,
        opcode=opcode,
        doc=doc,
        parameters=(*(a.name for a in attributes), "name"),
        operands=(register("dst", Access.WRITE),),
        attributes=attributes,
        engines=(Engine.SYNC,),
        choose=always(Engine.SYNC),
        cost=costs.moving_register,
        rules=(groups, ring_step, channel) if attributes else (),
        returns="dst",
        module=MODULE,
        source=f"{MODULE}.{name}",
    )


def _metadata_access(name: str, facts: Facts) -> Access | None:
    """Received counts are written unless they are known."""
    known = name == METADATA and facts.attributes["recv_counts_known"]
    return Access.READ if known else None


_WORDS = frozenset({"uint32"})
_MOVED = (result(buffers=SBUF_OR_HBM, packed=True), source("src", buffers=SBUF_OR_HBM, packed=True))
_REDUCED = (result(buffers=SBUF_OR_HBM), source("src", buffers=SBUF_OR_HBM))
_IN_HBM = (result(buffers=HBM, packed=True), source("src", buffers=HBM, packed=True))
_COUNTED = (
    *_IN_HBM,
    Operand(METADATA, Access.UPDATE, SBUF_OR_HBM, _WORDS, keep_rank=True),
)
_COUNTS = (GROUPS, flag("recv_counts_known"), flag("has_rdispls"))
_SAME = same_dtype("dst", "src")

ROWS = (
    _row(
        "all_reduce",
        130,
        "dst = op over the src of all ranks of the group, in float32, in the order of the group.",
        _REDUCED,
        (GROUPS, alu("op")),
        (_SAME, same_memory, computed_types, same_shape("src"), reduction),
        cost=dma_costs.around_ring(2),  # once to reduce, once to gather
        coalesces=True,
    ),
    _row(
        "all_gather",
        131,
        "dst = the src of all ranks of the group, one after the other along collective_dim.",
        _MOVED,
        (GROUPS, DIMENSION),
        (_SAME, same_memory, dimension((0, 1)), sizes(0, 1), gathered),
        coalesces=True,
    ),
    _row(
        "reduce_scatter",
        132,
        "dst = this rank's part of op over the src of all ranks, which is split in dimension 0.",
        _REDUCED,
        (GROUPS, DIMENSION, alu("op")),
        (_SAME, same_memory, computed_types, dimension((0,)), splits, sizes(1, 0), reduction),
        coalesces=True,
    ),
    _row(
        "all_to_all",
        133,
        "Part i of src, split in dimension 0, goes to rank i of the group; dst = what comes.",
        _IN_HBM,
        (GROUPS, DIMENSION),
        (_SAME, dimension((0,)), splits, sizes(1, 1)),
        coalesces=True,
    ),
    _row(
        "all_gather_v",
        134,
        "dst = a chunk of src of each rank, its length and place in metadata_tensor, in slots.",
        _COUNTED,
        _COUNTS,
        (_SAME, never_displaced, of_one_chip, metadata, slots),
        rendezvous_rule=two_cores,
        access=_metadata_access,
        since=Profile.NKI_0_6,
    ),
    _row(
        "all_to_all_v",
        135,
        "Chunks of src, their lengths and places in metadata_tensor, go to each rank.",
        _COUNTED,
        _COUNTS,
        (_SAME, displaced, metadata, slots),
        access=_metadata_access,
        warn=connectivity.counted_exchange,
        since=Profile.NKI_0_3,
    ),
    _row(
        "collective_permute",
        136,
        "dst = the src of the rank that has this one as its target; else it is left as it is.",
        _IN_HBM,
        (Attribute("source_target_pairs", AttributeKind.GROUPS),),
        (_SAME, elementwise("dst", "src"), pairs),
        cost=dma_costs.to_another_rank,
        warn=connectivity.circle,
    ),
    _row(
        "collective_permute_implicit",
        137,
        "dst = the src of the rank before this one in the ring that the group is.",
        _MOVED,
        (GROUPS, CHANNEL),
        (_SAME, same_memory, same_shape("src"), channel),
        cost=dma_costs.to_another_rank,
    ),
    _row(
        "collective_permute_implicit_reduce",
        138,
        "dst = op(src0, src1), in float32, of the rank before this one in the ring.",
        (result(buffers=SBUF_OR_HBM), *(source(n, buffers=SBUF_OR_HBM) for n in ("src0", "src1"))),
        (GROUPS, alu("op"), CHANNEL),
        (
            *(same_dtype("dst", name) for name in ("src0", "src1")),
            *(same_memory, computed_types, same_shape("src0", "src1"), reduction, channel),
        ),
        cost=dma_costs.to_another_rank,
    ),
    _register_row("rank_id", 139, "A register with the number of this rank."),
    _register_row(
        "collective_permute_implicit_current_processing_rank_id",
        140,
        "A register with the rank whose data are here after so many steps around the ring.",
        *(Attribute("iteration_id", AttributeKind.INT), GROUPS, CHANNEL),
    ),
)
