"""What an instruction does to memory and engine state: the one reading of a row's effects.

depend, allocate and schedule ask here, so that a row's `access` and `effects` mean the same to
all of them. The proofs have a reader of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nkic.ir.overlap import Box, Cells, box
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
Flags = tuple[tuple[bool, bool], ...]
_static: dict[Row, Flags | None] = {}


def _static_flags(row: Row) -> Flags | None:
    """The flags of rows whose accesses do not depend on the instance; None for the others."""
    if row not in _static:
        fixed = row.access is no_access
        _static[row] = tuple(_FLAGS[o.access] for o in row.operands) if fixed else None
    return _static[row]


class _Known:
    """What was found out for earlier instructions of a body, which keeps its patterns alive."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._boxes: dict[int, Box] = {}
        self._flags: dict[tuple[Row, tuple[Any, ...]], Flags] = {}

    def box(self, pattern: AccessPattern) -> Box:
        """The box of `pattern`; lower shares equal ones, so most are found by identity."""
        found = self._boxes.get(id(pattern))
        if found is None:
            found = self._boxes[id(pattern)] = box(pattern)
        return found

    def flags(self, instruction: Instruction) -> Flags:
        """Whether it reads and whether it writes each operand, which attributes decide."""
        row = instruction.row
        found = _static_flags(row)
        if found is not None:
            return found
        key = (row, instruction.attributes)
        if key not in self._flags:
            facts = instruction.facts(self.target)
            self._flags[key] = tuple([_FLAGS[row.access_of(o, facts)] for o in row.operands])
        return self._flags[key]


def _touches(instruction: Instruction, known: _Known) -> list[Touch]:
    """The accesses of `instruction`, reads first, with those of run-time offsets."""
    row, flags, found = instruction.row, known.flags(instruction), []
    for operand, (reads, writes) in zip(instruction.operands, flags, strict=True):
        if type(operand) is not AccessPattern:
            if isinstance(operand, View):
                raise TypeError(f"{row.name}: operand is a view: effects are known after lower")
            continue
        found.append(Touch(operand, reads, writes, known.box(operand)))
        if operand.dynamic is not None and isinstance(operand.dynamic.source, AccessPattern):
            source = operand.dynamic.source
            found.append(Touch(source, True, False, known.box(source)))
    found.sort(key=_writes)
    return found


def _writes(touch: Touch) -> bool:
    return touch.writes


Touches = Mapping[int, Sequence[Touch]]
REMEMBERED = 8  # bodies: those of one program's cores


class _Reading:
    """What all instructions of a body touch, and the cells of the tensors that they touch."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        known = _Known(target)
        self.touches = {i.number: _touches(i, known) for i in instructions(body)}
        boxes: dict[int, list[Box]] = defaultdict(list)
        for found in self.touches.values():
            for touch in found:
                boxes[touch.pattern.tensor.number].append(touch.area)
        self.cells = {tensor: Cells(found) for tensor, found in boxes.items()}


_recent: list[_Reading] = []


def _reading(body: Body, target: Target) -> _Reading:
    """The stages from depend on share the bodies that lower made, so each is read only once."""
    for known in _recent:
        if known.body is body and known.target is target:
            return known
    _recent.append(_Reading(body, target))
    del _recent[:-REMEMBERED]
    return _recent[-1]


def touches_of(body: Body, target: Target) -> Touches:
    """The accesses of all instructions of `body`, by number."""
    return _reading(body, target).touches


def cells_of(body: Body, target: Target) -> Mapping[int, Cells]:
    """Every tensor that `body` touches, by number, cut along the sides of all its accesses."""
    return _reading(body, target).cells


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
