"""Rows of `nki.collectives`: operations of several ranks, each of which runs its own kernel.

An instance of a row moves one tensor: lists of tensors and channels become several instances
(`language/collectives.py`). It is a rendezvous of all cores of all ranks of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import elementwise, same_dtype, wrong_operator
from nkic.machine.costs import Formula
from nkic.machine.instructions.dma import PRIORITY, computed_types, priority
from nkic.machine.instructions.parts import alu, flag, register, result, source
from nkic.machine.operands import (
    HBM,
    SBUF_OR_HBM,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Facts,
    Operand,
    Row,
    Rule,
    Violation,
    no_access,
)
from nkic.machine.operators import ALU
from nkic.machine.targets import Engine

# ------------------------------------------------------------------------------------------------
# Rules of `nki.collectives`: groups, tiles and counts, and the ranks that devices connect.
# Sources: `nki.collectives`; for connections, the restrictions of `all_to_all_v`, and permute in
# the guide to Neuron collectives. The compiler does not know the number of chips of an instance,
# so it warns only of what fits no instance (`Row.warn`).

SLUG, UNCONNECTED = "collective", "ranks-not-connected"
METADATA = "metadata_tensor"
PREPARED = "prepared"
COUNTS = frozenset({METADATA, PREPARED})  # tables, not data
REDUCTIONS = ("add", "minimum", "maximum")
MAX_CHANNELS = 4
CHIP_RANKS = 4  # ranks of two cores on one chip
SWITCHED = 4  # NeuronCore version whose devices are connected by a switch


def group_size(facts: Facts) -> int:
    replica_groups = facts.attributes["replica_group"]
    return max(1, len(replica_groups[0])) if replica_groups else 1


def groups(facts: Facts) -> Violation | None:
    """Groups have equal sizes and do not overlap."""
    replica_groups = facts.attributes["replica_group"]
    if not replica_groups or not all(replica_groups):
        text = "`replica_group` has no ranks"
    elif len({len(group) for group in replica_groups}) > 1:
        sizes = ", ".join(str(len(group)) for group in replica_groups)
        text = f"the groups of `replica_group` have {sizes} ranks; they must have the same size"
    elif len({*chain(*replica_groups)}) < sum(map(len, replica_groups)):
        text = "a rank appears twice in `replica_group`; groups must not overlap"
    elif min(chain(*replica_groups)) < 0:
        text = (
            f"`replica_group` has the rank {min(chain(*replica_groups))}; ranks are numbered from 0"
        )
    else:
        return None
    hint = "pass ReplicaGroup([[0, 1, …]]) with each rank in one list"
    return Violation(SLUG, text, "replica_group", hint)


def same_memory(facts: Facts) -> Violation | None:
    """Tensors are all in HBM or all in SBUF."""
    tiles = {name: t for name, t in facts.tiles.items() if name not in COUNTS}
    if len({tile.on_chip for tile in tiles.values()}) == 1:
        return None
    memories = ", ".join(f"`{name}` in {tile.buffer.value}" for name, tile in tiles.items())
    text = f"{memories}: all must be in HBM, or all in SBUF"
    return Violation(SLUG, text, "dst", "copy one with nisa.dma_copy first")


def flat(facts: Facts) -> Violation | None:
    """Tiles in SBUF have one free dimension."""
    for name, tile in facts.tiles.items():
        if name not in COUNTS and tile.on_chip and sum(num > 1 for _, num in tile.dims) > 1:
            return Violation(
                "operand-shape",
                f"`{name}` is {list(tile.shape)} in sbuf, where collectives take [partitions, "
                "elements]",
                name,
                f"make `{name}` 2-dimensional: [{tile.partitions}, {tile.free}]",
            )
    return None


def same_shape(*names: str) -> Rule:
    """The same as `elementwise`, for tiles in one memory."""
    fits = elementwise("dst", *names)
    return lambda facts: None if same_memory(facts) else fits(facts)


def dimension(in_sbuf: tuple[int, ...]) -> Rule:
    """`collective_dim` is 0 in HBM, one of `in_sbuf` in SBUF."""

    def rule(facts: Facts) -> Violation | None:
        expected = in_sbuf if facts.tile("src").on_chip else (0,)
        dim = facts.attributes["collective_dim"]
        if dim in expected:
            return None
        names = " or ".join(map(str, expected))
        text = f"`collective_dim` is {dim}, but must be {names} here"
        return Violation(SLUG, text, "collective_dim", f"pass {names}")

    return rule


def sizes(src: int, dst: int) -> Rule:
    """dst has `src` / `dst` times the elements of src; 0 means the number of ranks of a group."""

    def rule(facts: Facts) -> Violation | None:
        times = (src or group_size(facts), dst or group_size(facts))
        for name, tile in facts.tiles.items():
            expected, remainder = divmod(tile.elements * times[0], times[1])
            if name != "dst" and not remainder and expected != facts.tile("dst").elements:
                return _wrong_size(facts, name, expected)
        return None

    return rule


def _wrong_size(facts: Facts, name: str, expected: int) -> Violation:
    tile, dst = facts.tile(name), facts.tile("dst")
    return Violation(
        "element-count-mismatch",
        f"`{name}` has {tile.elements} elements {list(tile.shape)} and `dst` has {dst.elements} "
        f"{list(dst.shape)}, but must have {expected}",
        "dst",
        "multiply or divide the first dimension of `dst` by the number of ranks",
    )


def splits(facts: Facts) -> Violation | None:
    """src divides evenly among the ranks of the group."""
    tile, count = facts.tile("src"), group_size(facts)
    first = tile.partitions if tile.on_chip else 0
    if (first or tile.elements) % count == 0:
        return None
    text = (
        f"`src` has {first or tile.elements} parts, which cannot be divided equally among "
        f"{count} ranks"
    )
    return Violation(SLUG, text, "src", f"pad `src` to a multiple of {count}")


def gathered(facts: Facts) -> Violation | None:
    """In SBUF, dst has the gathered dimension multiplied, and the other one unchanged."""
    dst, src, count = facts.tile("dst"), facts.tile("src"), group_size(facts)
    if not src.on_chip:
        return None
    along = facts.attributes["collective_dim"]
    expected = (src.partitions * (1 if along else count), src.free * (count if along else 1))
    if (dst.partitions, dst.free) == expected:
        return None
    text = f"`dst` is {list(dst.shape)}, but must be {list(expected)}"
    hint = f"allocate `dst` as [{expected[0]}, {expected[1]}]"
    return Violation("element-count-mismatch", text, "dst", hint)


def reduction(facts: Facts) -> Violation | None:
    """`op` is add, minimum or maximum."""
    op = facts.attributes["op"]
    return None if op in REDUCTIONS else wrong_operator("op", ALU[op], ", ".join(REDUCTIONS))


def pairs(facts: Facts) -> Violation | None:
    """`source_target_pairs` are pairs; no rank sends or receives twice."""
    rank_pairs = facts.attributes["source_target_pairs"]
    if not rank_pairs or any(len(pair) != 2 for pair in rank_pairs):
        text = "`source_target_pairs` must be a list of pairs (source, target)"
    elif any(rank < 0 for pair in rank_pairs for rank in pair):
        text = "`source_target_pairs` has a negative rank"
    elif any(len({pair[side] for pair in rank_pairs}) < len(rank_pairs) for side in (0, 1)):
        text = "a rank appears twice as a source or as a target in `source_target_pairs`"
    else:
        return None
    hint = "pass each rank at most once as source and once as target"
    return Violation(SLUG, text, "source_target_pairs", hint)


def channel(facts: Facts) -> Violation | None:
    channel_id = facts.attributes["channel_id"]
    if 0 <= channel_id < MAX_CHANNELS:
        return None
    text = f"the channel is {channel_id}; channels are 0 to {MAX_CHANNELS - 1}"
    return Violation(SLUG, text, "channel_id", "use fewer channels, numbered from 0")


def metadata(facts: Facts) -> Violation | None:
    """Counts and displacements are rows with one column per rank; in SBUF, in one partition."""
    tile, rows = facts.tile(METADATA), 3 + facts.attributes["has_rdispls"]
    count = rows * group_size(facts)
    if tile.elements == count and tile.partitions <= 1:
        return None
    text = f"`metadata_tensor` is {list(tile.shape)}, but must be [{rows}, {group_size(facts)}]"
    hint = (
        f"allocate it as [{rows}, {group_size(facts)}] in HBM, or with a leading dimension of "
        "1 in SBUF"
    )
    return Violation(SLUG, text, METADATA, hint)


def prepared(facts: Facts) -> Violation | None:
    """The prepared tensor has the size of the counts."""
    prepared_tile, counts = facts.tile(PREPARED), facts.tile(METADATA)
    if prepared_tile.elements == counts.elements:
        return None
    text = f"`{PREPARED}` is {list(prepared_tile.shape)} and `{METADATA}` {list(counts.shape)}"
    return Violation("element-count-mismatch", text, PREPARED, "give both the same size")


def slots(facts: Facts) -> Violation | None:
    """dst divides evenly into one slot per rank."""
    dst, count = facts.tile("dst"), group_size(facts)
    if dst.elements % count == 0:
        return None
    text = f"`dst` has {dst.elements} elements, which cannot be divided into {count} equal slots"
    return Violation(SLUG, text, "dst", f"pad `dst` to a multiple of {count} elements")


def displaced(facts: Facts) -> Violation | None:
    """`has_rdispls` is used only with a switch between devices, which trn3 has."""
    if not facts.attributes["has_rdispls"] or facts.target.generation >= SWITCHED:
        return None
    text = f"`has_rdispls` needs trn3; the target is {facts.target.name}"
    return Violation("needs-newer-target", text, "has_rdispls", "leave it out")


def never_displaced(facts: Facts) -> Violation | None:
    """all_gather_v has no displacements: chunks are in slots of equal size."""
    if not facts.attributes["has_rdispls"]:
        return None
    text = "`has_rdispls=True` is not supported by all_gather_v"
    return Violation(SLUG, text, "has_rdispls", "leave it out: chunks are in slots of equal size")


def of_one_chip(facts: Facts) -> Violation | None:
    """all_gather_v has groups of four ranks."""
    if group_size(facts) == CHIP_RANKS:
        return None
    text = f"a group has {group_size(facts)} ranks; all_gather_v needs exactly {CHIP_RANKS}"
    return Violation(
        SLUG, text, "replica_group", f"use groups of {CHIP_RANKS} ranks, or all_gather"
    )


def ring_step(facts: Facts) -> Violation | None:
    """`iteration_id` is not negative."""
    if (iteration := facts.attributes["iteration_id"]) >= 0:
        return None
    text = f"`iteration_id` is {iteration}, but must not be negative"
    return Violation(SLUG, text, "iteration_id", "number the ring steps from 0")


def same_attributes(parties: Sequence[Facts]) -> Violation | None:
    """All cores of a rank pass the same attributes."""
    first = parties[0].attributes
    for facts in parties[1:]:
        for name, value in facts.attributes.items():
            if value != first[name]:
                text = f"`{name}` is {first[name]} on core 0 and {value} on core 1"
                return Violation("core-meeting", text, name, f"pass the same `{name}` on all cores")
    return None


def two_cores(parties: Sequence[Facts]) -> Violation | None:
    """all_gather_v runs on ranks of two cores."""
    if len(parties) == 2:
        return same_attributes(parties)
    text = f"all_gather_v: a rank has {len(parties)} core; it needs 2"
    return Violation("core-meeting", text, help="launch the kernel on 2 cores, or use all_gather")


# Connections.


def counted_exchange(facts: Facts, cores: int) -> Violation | None:
    """Warn if all_to_all_v links other than whole switched devices, or equal ranks of nodes."""
    ranks = facts.target.chip_cores // cores
    if facts.target.generation >= SWITCHED:
        return _whole_devices(facts, cores, ranks)
    for group in facts.attributes["replica_group"]:
        neighbours = next(((a, b) for a, b in pairwise(sorted(group)) if (b - a) % ranks), None)
        if neighbours is not None:
            text = (
                f"ranks {neighbours[0]} and {neighbours[1]} exchange data, but on "
                f"{facts.target.name} all_to_all_v connects only ranks of the same index on "
                "several nodes"
            )
            return Violation(UNCONNECTED, text, "replica_group", "use all_to_all between these")
    return None


def _whole_devices(facts: Facts, cores: int, ranks: int) -> Violation | None:
    name, hint = facts.target.name, f"use lists such as {list(range(ranks))}, on two cores"
    if cores < facts.target.max_cores:
        text = f"a rank has {cores} core, but on {name} all_to_all_v needs 2"
        return Violation(UNCONNECTED, text, "replica_group", hint)
    for group in facts.attributes["replica_group"]:
        if len(group) % ranks or list(group) != list(range(group[0], group[0] + len(group))):
            text = (
                f"the ranks {list(group)} are not whole devices of {ranks} consecutive "
                f"ranks, which all_to_all_v needs on {name}"
            )
            return Violation(UNCONNECTED, text, "replica_group", hint)
    return None


def without_switch(facts: Facts, cores: int) -> Violation | None:
    """Warn of split collectives, which instances with switched devices do not have."""
    if facts.target.generation < SWITCHED:
        return None
    text = (
        f"instances of {facts.target.name} behind a switch do not support collectives in two halves"
    )
    return Violation(
        UNCONNECTED, text, help="call all_to_all_v or all_gather_v as a single instruction"
    )


def circle(facts: Facts, cores: int) -> Violation | None:
    """Warn if collective_permute has a rank that only sends or only receives."""
    pairs = facts.attributes["source_target_pairs"]
    sources, targets = ({pair[side] for pair in pairs} for side in (0, 1))
    if sources == targets:
        return None
    odd = min(sources ^ targets)
    does = "sends and does not receive" if odd in sources else "receives and does not send"
    text = f"rank {odd} {does}; only circular permutations are supported"
    return Violation(UNCONNECTED, text, "source_target_pairs", "choose pairs that form rings")


# --------------------------------------------------------------------------------------------------

MODULE = "nki.collectives"
GROUPS = Attribute("replica_group", AttributeKind.GROUPS)
DIMENSION = Attribute("collective_dim", AttributeKind.INT)
CHANNEL = Attribute("channel_id", AttributeKind.INT, default=0)


once_around = costs.around_ring(1)


def _row(
    name: str,
    opcode: int,
    doc: str,
    operands: tuple[Operand, ...],
    attributes: tuple[Attribute, ...],
    own_rules: tuple[Rule, ...],
    *,
    rendezvous_rule: Callable[[Sequence[Facts]], Violation | None] = same_attributes,
    access: Callable[[str, Facts], Access | None] = no_access,
    cost: Formula = once_around,
    since: Profile = Profile.BETA2,
    warn: Callable[[Facts, int], Violation | None] | None = None,
    coalesces: bool = False,
    prepared_by: str = "",
) -> Row:
    """Return a row with the properties common to all rows that move data."""
    tiles = [o.name for o in operands if o.name not in COUNTS]
    trailing = [o.name for o in operands if o.name in COUNTS] + [a.name for a in attributes[1:]]
    return Row(
        name=name,
        opcode=opcode,
        doc=doc,
        parameters=(*tiles, attributes[0].name, *trailing, "priority", "name"),
        operands=operands,
        attributes=(*attributes, PRIORITY),
        engines=(Engine.DMA,),
        cost=cost,
        rules=(*((groups,) if GROUPS in attributes else ()), flat, *own_rules, priority),
        access=access,
        rendezvous_rule=rendezvous_rule,
        warn=warn,
        coalesces=coalesces,
        prepared_by=prepared_by,
        channel=CHANNEL.name if CHANNEL in attributes else "",
        since=since,
        module=MODULE,
    )


def _register_row(name: str, opcode: int, doc: str, *attributes: Attribute) -> Row:
    return Row(
        name=name,
        opcode=opcode,
        doc=doc,
        operands=(register("dst", Access.WRITE),),
        attributes=attributes,
        engines=(Engine.SYNC,),
        cost=costs.moving_register,
        rules=(groups, ring_step, channel) if attributes else (),
        returns="dst",
        module=MODULE,
    )


def _prepare_row(name: str, opcode: int, prepares: str) -> Row:
    """Return a row that takes the counts of a split collective, before the data exist."""
    return Row(
        name=name,
        opcode=opcode,
        doc=f"Takes the counts in {METADATA} for the second half of {prepares}.",
        operands=(
            result(PREPARED, buffers=HBM, dtypes=_WORDS, keep_rank=True),
            source(METADATA, buffers=SBUF_OR_HBM, dtypes=_WORDS, keep_rank=True),
        ),
        engines=(Engine.DMA,),
        cost=costs.dma_preparing,
        rules=(prepared,),
        warn=without_switch,
        since=Profile.NKI_0_7,
        module=MODULE,
        depends=Depends.ELEMENTWISE,
        moves=True,
        prepares=prepares,
    )


def _metadata_access(name: str, facts: Facts) -> Access | None:
    """Return READ for received counts that are known; otherwise they are written, too."""
    is_known = name == METADATA and facts.attributes["recv_counts_known"]
    return Access.READ if is_known else None


_WORDS = frozenset({"uint32"})
_MOVED = (result(buffers=SBUF_OR_HBM, packed=True), source("src", buffers=SBUF_OR_HBM, packed=True))
_REDUCED = (result(buffers=SBUF_OR_HBM), source("src", buffers=SBUF_OR_HBM))
_IN_HBM = (result(buffers=HBM, packed=True), source("src", buffers=HBM, packed=True))
_COUNTED = (*_IN_HBM, Operand(METADATA, Access.UPDATE, SBUF_OR_HBM, _WORDS, keep_rank=True))
_TRIGGERED = (*_COUNTED, source(PREPARED, buffers=HBM, dtypes=_WORDS, keep_rank=True))
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
        cost=costs.around_ring(2),  # once to reduce, once to gather
        coalesces=True,
    ),
    _row(
        "all_gather",
        131,
        "dst = the src of all ranks of the group, concatenated along collective_dim.",
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
        "Sends part i of src, split in dimension 0, to rank i of the group; dst = parts received.",
        _IN_HBM,
        (GROUPS, DIMENSION),
        (_SAME, dimension((0,)), splits, sizes(1, 1)),
        coalesces=True,
    ),
    _row(
        "all_gather_v",
        134,
        "dst = one slot per rank with a chunk of its src, as metadata_tensor places it.",
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
        "Sends a chunk of src to each rank; metadata_tensor holds their lengths and places.",
        _COUNTED,
        _COUNTS,
        (_SAME, displaced, metadata, slots),
        access=_metadata_access,
        warn=counted_exchange,
        since=Profile.NKI_0_3,
    ),
    _row(
        "collective_permute",
        136,
        "dst = the src of the rank whose target is this rank; unchanged if there is none.",
        _IN_HBM,
        (Attribute("source_target_pairs", AttributeKind.GROUPS),),
        (_SAME, elementwise("dst", "src"), pairs),
        cost=costs.to_another_rank,
        warn=circle,
    ),
    _row(
        "collective_permute_implicit",
        137,
        "dst = the src of the previous rank in the ring that the group forms.",
        _MOVED,
        (GROUPS, CHANNEL),
        (_SAME, same_memory, same_shape("src"), channel),
        cost=costs.to_another_rank,
    ),
    _row(
        "collective_permute_implicit_reduce",
        138,
        "dst = op(src0, src1) of the previous rank in the ring, in float32.",
        (result(buffers=SBUF_OR_HBM), *(source(n, buffers=SBUF_OR_HBM) for n in ("src0", "src1"))),
        (GROUPS, alu("op"), CHANNEL),
        (
            *(same_dtype("dst", name) for name in ("src0", "src1")),
            *(same_memory, computed_types, same_shape("src0", "src1"), reduction, channel),
        ),
        cost=costs.to_another_rank,
    ),
    _prepare_row("all_gather_v_prepare", 141, "all_gather_v"),
    _row(
        "all_gather_v_trigger",
        142,
        "all_gather_v with the counts taken by all_gather_v_prepare.",
        _TRIGGERED,
        _COUNTS,
        (_SAME, never_displaced, of_one_chip, metadata, prepared, slots),
        rendezvous_rule=two_cores,
        access=_metadata_access,
        since=Profile.NKI_0_7,
        prepared_by="all_gather_v_prepare",
    ),
    _prepare_row("all_to_all_v_prepare", 143, "all_to_all_v"),
    _row(
        "all_to_all_v_trigger",
        144,
        "all_to_all_v with the counts taken by all_to_all_v_prepare.",
        _TRIGGERED,
        _COUNTS,
        (_SAME, displaced, metadata, prepared, slots),
        access=_metadata_access,
        warn=counted_exchange,
        since=Profile.NKI_0_7,
        prepared_by="all_to_all_v_prepare",
    ),
    _register_row("rank_id", 139, "Returns the number of this rank in a register."),
    _register_row(
        "collective_permute_implicit_current_processing_rank_id",
        140,
        "Returns in a register the rank whose data are here after iteration_id steps of the ring.",
        *(Attribute("iteration_id", AttributeKind.INT), GROUPS, CHANNEL),
    ),
)
