"""Rows of the DMA engines: transfers between HBM and SBUF, and within each.

They run in DMA queues, so `Engine.DMA` is their only engine. The `engine` argument of the call
is an attribute here: the sequencer that commands the descriptor hardware. `dma_costs.dma_trigger`
determines the engine that triggers a transfer and how long that keeps the engine busy.
"""

from __future__ import annotations

from nkic.machine.clock import dma_costs
from nkic.machine.constraints import packed_as_is, same_dtype, wide_as_is
from nkic.machine.engines import Engine
from nkic.machine.instructions import dma_rules as rules
from nkic.machine.instructions.parts import choice, optional, result, source
from nkic.machine.operands import SBUF, SBUF_OR_HBM, AttributeKind, Depends, Row

DMA = (Engine.DMA,)
OUT_OF_BOUNDS = choice("oob_mode", "error", "error", "skip")
SKIPPED = (OUT_OF_BOUNDS.name, "skip")
DESCRIPTORS = choice("dge_mode", "unknown", "unknown", "swdge", "hwdge", "none")
PRIORITY = optional("priority", AttributeKind.INT, generation=4)

ROWS = (
    Row(
        name="dma_copy",
        opcode=10,
        skips=SKIPPED,
        moves=True,
        copies=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = src, element by element in the order of the dimensions, converted through "
        "float32 if the types differ.",
        parameters=("dst", "src", "priority", "oob_mode", "dge_mode", "engine", "name"),
        operands=(
            result(buffers=SBUF_OR_HBM, indexed=True, packed=True, wide=True),
            source("src", buffers=SBUF_OR_HBM, indexed=True, packed=True, wide=True),
        ),
        attributes=(
            PRIORITY,
            OUT_OF_BOUNDS,
            DESCRIPTORS,
            choice("engine", "unknown", "unknown", "sync", "scalar"),
        ),
        engines=DMA,
        cost=dma_costs.dma_copying,
        rules=(
            rules.same_elements,
            packed_as_is,
            wide_as_is,
            rules.known_types,
            rules.descriptor_mode,
            rules.gathering,
            rules.one_index_each,
            rules.whole_rows,
            rules.priority,
        ),
        source="nki.isa.dma_copy; NKI DMA overview; migration guide to NKI 0.3.0",
    ),
    Row(
        name="dma_transpose",
        opcode=11,
        skips=SKIPPED,
        rows_last=True,
        moves=True,
        doc="dst = src with its dimensions reversed; of four, the middle two keep their order.",
        in_blocks=True,
        parameters=("dst", "src", "axes", "priority", "dge_mode", "oob_mode", "name"),
        # The permutation refers to dimensions, so lower keeps them.
        operands=(
            result(buffers=SBUF, keep_rank=True, packed=True),
            source("src", buffers=SBUF_OR_HBM, keep_rank=True, indexed=True, packed=True),
        ),
        attributes=(optional("axes", AttributeKind.INTS), PRIORITY, DESCRIPTORS, OUT_OF_BOUNDS),
        engines=DMA,
        cost=dma_costs.dma_transposing,
        rules=(
            rules.transposed_shape,
            same_dtype("dst", "src"),
            rules.transposed_type,
            rules.transpose_mode,
            rules.gathering,
            rules.transposed_by_hardware,
            rules.transposed_rows_gathered,
            rules.priority,
        ),
        source="nki.isa.dma_transpose; Trainium2 architecture guide, DMA transpose; descriptor "
        "generation engine reference",
    ),
)
