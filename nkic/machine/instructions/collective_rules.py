"""Rules of `nki.collectives`: groups, tiles and counts, and the ranks that devices connect.

Sources: `nki.collectives`; for connections, the restrictions of `all_to_all_v`, and permute in the
guide to Neuron collectives. The compiler does not know the number of chips of an instance, so it
warns only of what fits no instance (`Row.warn`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

from nkic.machine.constraints import elementwise, wrong_operator
from nkic.machine.facts import Facts
from nkic.machine.operands import Rule, Violation
from nkic.machine.operators import ALU

SLUG, UNCONNECTED = "collective", "ranks-not-connected"
METADATA = "metadata_tensor"
PREPARED = "prepared"
COUNTS = frozenset({METADATA, PREPARED})  # tables, not data
REDUCTIONS = ("add", "minimum", "maximum")
MAX_CHANNELS = 4
CHIP_RANKS = 4  # ranks of two cores on one chip
SWITCHED = 4  # NeuronCore version whose devices are connected by a switch


def group_size(facts: Facts) -> int:
    """Return the number of ranks in a group."""
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
        count = group_size(facts) if "replica_group" in facts.attributes else 1
        times = (src or count, dst or count)
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
    """The channel is one of at most four."""
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
