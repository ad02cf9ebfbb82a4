"""The cost of an instruction on plain tiles, for its documentation."""

from __future__ import annotations

from typing import Any

from nkic.machine.dtypes import DTYPES
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import Buffer
from nkic.machine.operands import Attribute, AttributeKind, Operand, Row
from nkic.machine.rules import violations
from nkic.machine.targets import DEFAULT
from nkic.machine.timing import timing

PARTITIONS, FREE, DTYPE = 128, 512, "float32"
_CHOSEN = {AttributeKind.ALU: "add", AttributeKind.ACTIVATION: "exp", AttributeKind.NUMBER: 1.0}


def told(row: Row) -> str:
    """Return the cost on tiles of [128, 512] float32 as a sentence; empty if it takes no such
    tiles.
    """
    operands = {operand.name: _value(operand) for operand in row.operands}
    attributes = {attribute.name: _choice(attribute) for attribute in row.attributes}
    facts = Facts(DEFAULT, operands, attributes, row.engines[0])
    if any(value is ... for value in (*operands.values(), *attributes.values())):
        return ""
    engine = row.choose(facts)
    facts = Facts(DEFAULT, operands, attributes, engine)
    if violations(row, facts):
        return ""
    hold = timing(row, facts, engine).hold / 1000
    size = f"[{PARTITIONS}, {FREE}] {DTYPE}"
    return f"On tiles of {size}, {DEFAULT.name}'s {engine.value} is busy for {hold:.0f} ns."


def _value(operand: Operand) -> Any:
    """Return a tile in SBUF, or the simplest other value that the operand allows."""
    if operand.default is not ...:
        return operand.default
    if operand.optional:
        return None
    if operand.number and operand.column:
        return 1.0
    fits = Buffer.SBUF in operand.buffers and (not operand.dtypes or DTYPE in operand.dtypes)
    dims = ((1, 1),) if operand.column else ((1, FREE),)
    return Tile(Buffer.SBUF, DTYPES[DTYPE], 0, PARTITIONS, dims) if fits else ...


def _choice(attribute: Attribute) -> Any:
    return _CHOSEN.get(attribute.kind, ...) if attribute.required else attribute.default
