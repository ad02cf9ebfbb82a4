"""What an instruction does to memory and engine state: the one reading of a row's effects.

depend, allocate and both audits ask here, so that a row's `access` and `effects` mean the
same to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nkic.ir.overlap import Box, box
from nkic.ir.program import Body, Instruction, instructions
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.facts import Register
from nkic.machine.operands import Access, Effects, Row, no_access, no_effects
from nkic.machine.targets import Target


class Touch(NamedTuple):
    """One access to a tensor, and the box that covers it."""

    pattern: AccessPattern
    reads: bool
    writes: bool
    area: Box


_FLAGS = {
    Access.READ: (True, False),
    Access.WRITE: (False, True),
    Access.UPDATE: (True, True),
    Access.ORDER: (True, True),  # as if it read and wrote: nothing passes it
}
_static: dict[Row, tuple[tuple[bool, bool], ...] | None] = {}


def _static_flags(row: Row) -> tuple[tuple[bool, bool], ...] | None:
    """The flags of rows whose accesses do not depend on the instance; None for the others."""
    if row not in _static:
        fixed = row.access is no_access
        _static[row] = tuple(_FLAGS[o.access] for o in row.operands) if fixed else None
    return _static[row]


def touches(instruction: Instruction, target: Target) -> list[Touch]:
    """The accesses of `instruction`, reads first, with those of run-time offsets."""
    row = instruction.row
    flags = _static_flags(row)
    if flags is None:
        facts = instruction.facts(target)
        flags = tuple(_FLAGS[row.access_of(o, facts)] for o in row.operands)
    found = []
    for operand, (reads, writes) in zip(instruction.operands, flags, strict=True):
        if type(operand) is not AccessPattern:
            if isinstance(operand, View):
                raise TypeError(f"{row.name}: operand is a view: effects are known after lower")
            continue
        found.append(Touch(operand, reads, writes, box(operand)))
        if operand.dynamic is not None and isinstance(operand.dynamic.source, AccessPattern):
            source = operand.dynamic.source
            found.append(Touch(source, True, False, box(source)))
    found.sort(key=_writes)
    return found


def _writes(touch: Touch) -> bool:
    return touch.writes


Touches = Mapping[int, Sequence[Touch]]
_recent: list[tuple[Body, Target, Touches]] = []
REMEMBERED = 8  # bodies: those of one program's cores


def touches_of(body: Body, target: Target) -> Touches:
    """The accesses of all instructions of `body`, by number.

    The stages from depend on share the bodies that lower made, so this reads each only once.
    """
    for known, its_target, found in _recent:
        if known is body and its_target is target:
            return found
    fresh = {i.number: touches(i, target) for i in instructions(body)}
    _recent.append((body, target, fresh))
    del _recent[:-REMEMBERED]
    return fresh


def state_effects(instruction: Instruction, target: Target) -> Effects:
    """Engine state and registers that `instruction` reads and writes."""
    row = instruction.row
    effects = NOTHING if row.effects is no_effects else row.effects(instruction.facts(target))
    registers = _registers(instruction)
    if not registers:
        return effects
    reads = tuple(name for name, access in registers if access.reads)
    writes = tuple(name for name, access in registers if access.writes)
    return Effects(effects.reads + reads, effects.writes + writes)


NOTHING = Effects()


def _registers(instruction: Instruction) -> list[tuple[str, Access]]:
    """The registers among the operands, those of run-time offsets included."""
    found = []
    for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
        if type(operand) is Register:
            found.append((f"register {operand.number}", rule.access))
        elif type(operand) is AccessPattern and operand.dynamic is not None:
            source = operand.dynamic.source
            if isinstance(source, Register):
                found.append((f"register {source.number}", Access.READ))
    return found
