"""Rows of the debug stream: output of a running program."""

from __future__ import annotations

from nkic.machine.clock import dma_costs
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.parts import source
from nkic.machine.operands import SBUF_OR_HBM, Attribute, AttributeKind, Effects, Row

STREAM = ("debug.stream",)


def printing(facts: Facts) -> Effects:
    """Order the prints of a core by program order."""
    return Effects(STREAM, STREAM)


ROWS = (
    Row(
        name="device_print",
        opcode=250,
        doc="Prints a string and the current values of a tensor.",
        parameters=("print_prefix", "tensor"),
        # The output shows the dimensions as the kernel wrote them.
        operands=(source("tensor", buffers=SBUF_OR_HBM, keep_rank=True, max_dims=8, packed=True),),
        attributes=(Attribute("print_prefix", AttributeKind.TEXT),),
        engines=(Engine.DMA,),
        cost=dma_costs.dma_printing,
        effects=printing,
        source="nki.language.device_print",
        module="nki.language",
    ),
)
