"""Rows of `nki.collectives`: operations of several ranks, each of which runs its own kernel.

An instance of a row moves one tensor: lists of tensors and channels become several instances
(`language/collectives.py`). It is a rendezvous of all cores of all ranks of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.clock import dma_costs
from nkic.machine.constraints import elementwise, same_dtype
from nkic.machine.costs import Formula
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions import collective_rules as rules
from nkic.machine.instructions.collective_rules import COUNTS, METADATA, PREPARED
from nkic.machine.instructions.dma import PRIORITY
from nkic.machine.instructions.dma_rules import computed_types, priority
from nkic.machine.instructions.parts import alu, flag, register, result, source
from nkic.machine.operands import (
    HBM,
    SBUF_OR_HBM,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Operand,
    Row,
    Rule,
    Violation,
    no_access,
)

MODULE = "nki.collectives"
GROUPS = Attribute("replica_group", AttributeKind.GROUPS)
DIMENSION = Attribute("collective_dim", AttributeKind.INT)
CHANNEL = Attribute("channel_id", AttributeKind.INT, default=0)


once_around = dma_costs.around_ring(1)


def _row(
    name: str,
    opcode: int,
    doc: str,
    operands: tuple[Operand, ...],
    attributes: tuple[Attribute, ...],
    own_rules: tuple[Rule, ...],
    *,
    rendezvous_rule: Callable[[Sequence[Facts]], Violation | None] = rules.same_attributes,
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
        rules=(
            *((rules.groups,) if GROUPS in attributes else ()),
            rules.flat,
            *own_rules,
            priority,
        ),
        access=access,
        rendezvous_rule=rendezvous_rule,
        warn=warn,
        coalesces=coalesces,
        prepared_by=prepared_by,
        channel=CHANNEL.name if CHANNEL in attributes else "",
        since=since,
        module=MODULE,
        source=f"{MODULE}.{name}",
    )


def _register_row(name: str, opcode: int, doc: str, *attributes: Attribute) -> Row:
    """Return a row that writes a rank to a register."""
    return Row(
        name=name,
        opcode=opcode,
        doc=doc,
        parameters=(*(a.name for a in attributes), "name"),
        operands=(register("dst", Access.WRITE),),
        attributes=attributes,
        engines=(Engine.SYNC,),
        cost=costs.moving_register,
        rules=(rules.groups, rules.ring_step, rules.channel) if attributes else (),
        returns="dst",
        module=MODULE,
        source=f"{MODULE}.{name}",
    )


def _prepare_row(name: str, opcode: int, prepares: str) -> Row:
    """Return a row that takes the counts of a split collective, before the data exist."""
    return Row(
        name=name,
        opcode=opcode,
        doc=f"Takes the counts in {METADATA} for the second half of {prepares}.",
        parameters=(PREPARED, METADATA, "name"),
        operands=(
            result(PREPARED, buffers=HBM, dtypes=_WORDS, keep_rank=True),
            source(METADATA, buffers=SBUF_OR_HBM, dtypes=_WORDS, keep_rank=True),
        ),
        engines=(Engine.DMA,),
        cost=dma_costs.dma_preparing,
        rules=(rules.prepared,),
        warn=rules.without_switch,
        since=Profile.NKI_0_7,
        module=MODULE,
        source=f"{MODULE}.{name}",
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
_COUNTED = (
    *_IN_HBM,
    Operand(METADATA, Access.UPDATE, SBUF_OR_HBM, _WORDS, keep_rank=True),
)
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
        (_SAME, rules.same_memory, computed_types, rules.same_shape("src"), rules.reduction),
        cost=dma_costs.around_ring(2),  # once to reduce, once to gather
        coalesces=True,
    ),
    _row(
        "all_gather",
        131,
        "dst = the src of all ranks of the group, concatenated along collective_dim.",
        _MOVED,
        (GROUPS, DIMENSION),
        (_SAME, rules.same_memory, rules.dimension((0, 1)), rules.sizes(0, 1), rules.gathered),
        coalesces=True,
    ),
    _row(
        "reduce_scatter",
        132,
        "dst = this rank's part of op over the src of all ranks, which is split in dimension 0.",
        _REDUCED,
        (GROUPS, DIMENSION, alu("op")),
        (
            _SAME,
            rules.same_memory,
            computed_types,
            rules.dimension((0,)),
            rules.splits,
            rules.sizes(1, 0),
            rules.reduction,
        ),
        coalesces=True,
    ),
    _row(
        "all_to_all",
        133,
        "Sends part i of src, split in dimension 0, to rank i of the group; dst = parts received.",
        _IN_HBM,
        (GROUPS, DIMENSION),
        (_SAME, rules.dimension((0,)), rules.splits, rules.sizes(1, 1)),
        coalesces=True,
    ),
    _row(
        "all_gather_v",
        134,
        "dst = one slot per rank with a chunk of its src, as metadata_tensor places it.",
        _COUNTED,
        _COUNTS,
        (_SAME, rules.never_displaced, rules.of_one_chip, rules.metadata, rules.slots),
        rendezvous_rule=rules.two_cores,
        access=_metadata_access,
        since=Profile.NKI_0_6,
    ),
    _row(
        "all_to_all_v",
        135,
        "Sends a chunk of src to each rank; metadata_tensor holds their lengths and places.",
        _COUNTED,
        _COUNTS,
        (_SAME, rules.displaced, rules.metadata, rules.slots),
        access=_metadata_access,
        warn=rules.counted_exchange,
        since=Profile.NKI_0_3,
    ),
    _row(
        "collective_permute",
        136,
        "dst = the src of the rank whose target is this rank; unchanged if there is none.",
        _IN_HBM,
        (Attribute("source_target_pairs", AttributeKind.GROUPS),),
        (_SAME, elementwise("dst", "src"), rules.pairs),
        cost=dma_costs.to_another_rank,
        warn=rules.circle,
    ),
    _row(
        "collective_permute_implicit",
        137,
        "dst = the src of the previous rank in the ring that the group forms.",
        _MOVED,
        (GROUPS, CHANNEL),
        (_SAME, rules.same_memory, rules.same_shape("src"), rules.channel),
        cost=dma_costs.to_another_rank,
    ),
    _row(
        "collective_permute_implicit_reduce",
        138,
        "dst = op(src0, src1) of the previous rank in the ring, in float32.",
        (result(buffers=SBUF_OR_HBM), *(source(n, buffers=SBUF_OR_HBM) for n in ("src0", "src1"))),
        (GROUPS, alu("op"), CHANNEL),
        (
            *(same_dtype("dst", name) for name in ("src0", "src1")),
            *(
                rules.same_memory,
                computed_types,
                rules.same_shape("src0", "src1"),
                rules.reduction,
                rules.channel,
            ),
        ),
        cost=dma_costs.to_another_rank,
    ),
    _prepare_row("all_gather_v_prepare", 141, "all_gather_v"),
    _row(
        "all_gather_v_trigger",
        142,
        "all_gather_v with the counts taken by all_gather_v_prepare.",
        _TRIGGERED,
        _COUNTS,
        (
            _SAME,
            rules.never_displaced,
            rules.of_one_chip,
            rules.metadata,
            rules.prepared,
            rules.slots,
        ),
        rendezvous_rule=rules.two_cores,
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
        (_SAME, rules.displaced, rules.metadata, rules.prepared, rules.slots),
        access=_metadata_access,
        warn=rules.counted_exchange,
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
