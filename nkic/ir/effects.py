"""Effects of instructions on memory and engine state, derived from their rows.

depend, allocate and schedule all use this module, so that a row's `access` and `effects` have one
meaning. The proofs derive effects independently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from nkic.ir.overlap import Box, Cells, box
from nkic.ir.program import Body, Instruction, instructions
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.facts import Register
from nkic.machine.operands import Access, Effects, Row, no_access, no_effects
from nkic.machine.targets import Target


class Area:
    """A box of a tensor and its cells, which are numbered across all tensors of a body.

    The cells are filled in once all boxes of the tensor are known.
    """

    __slots__ = ("box", "cells")

    def __init__(self, box: Box, cells: tuple[int, ...] = ()) -> None:
        self.box = box
        self.cells = cells


class Touch(NamedTuple):
    """One access to a tensor and its area, which is interned per tensor."""

    pattern: AccessPattern
    reads: bool
    writes: bool
    area: Area

    @property
    def box(self) -> Box:
        """The bounding box of the access."""
        return self.area.box


_FLAGS = {
    Access.READ: (True, False),
    Access.WRITE: (False, True),
    Access.UPDATE: (True, True),
    Access.ORDER: (True, True),  # as a read and a write: no access moves across it
}
Use = tuple[int, bool, bool]  # an operand's index, whether it is read, whether it is written


class _TouchMemo:
    """Memoised touches of a body's instructions. The body keeps its patterns alive."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.first: dict[int, Area] = {}  # the area of each tensor's first access
        self.parts: dict[int, dict[Box, Area]] = {}  # all areas, if more than one
        self.stateful: set[int] = set()  # instructions with register operands
        self._fixed: dict[Row, list[Use]] = {}
        self._uses: dict[tuple[Row, tuple[Any, ...]], list[Use]] = {}
        self._areas: dict[int, Area] = {}  # by the pattern's identity: lower interns equal patterns

    def uses(self, instruction: Instruction) -> list[Use]:
        """Return the access to each operand, which attributes may decide; pure reads first."""
        row = instruction.row
        if row.access is no_access:
            if row not in self._fixed:
                self._fixed[row] = self._ordered_uses([o.access for o in row.operands])
            return self._fixed[row]
        key = (row, instruction.attributes)
        if key not in self._uses:
            facts = instruction.facts(self.target)
            self._uses[key] = self._ordered_uses([row.access_of(o, facts) for o in row.operands])
        return self._uses[key]

    def _ordered_uses(self, accesses: Sequence[Access]) -> list[Use]:
        """Return one use per operand, in operand order except that writes come last."""
        uses = [(index, *_FLAGS[access]) for index, access in enumerate(accesses)]
        return sorted(uses, key=itemgetter(2))

    def touches(self, instruction: Instruction) -> tuple[Touch, ...]:
        """Return the accesses of `instruction`, reads first, with reads of run-time offsets."""
        operands, areas = instruction.operands, self._areas
        touches: list[Touch] = []
        uses = self._fixed.get(instruction.row) or self.uses(instruction)
        for index, reads, writes in uses:
            operand = operands[index]
            area = areas.get(id(operand))
            if area is None:
                if type(operand) is not AccessPattern:
                    self._note_operand(instruction, operand)
                    continue
                if operand.dynamic is not None:
                    return self._with_offsets(instruction, uses)
                area = areas[id(operand)] = self._area(operand)
            touches.append(tuple.__new__(Touch, (operand, reads, writes, area)))
        return tuple(touches)

    def _area(self, pattern: AccessPattern) -> Area:
        """Return the area that `pattern` covers, interned per tensor."""
        tensor, own = pattern.tensor.number, box(pattern)
        first = self.first.get(tensor)
        if first is None:
            first = self.first[tensor] = Area(own, (len(self.first),))
            return first
        if first.box == own:
            return first
        parts = self.parts.get(tensor)
        if parts is None:
            parts = self.parts[tensor] = {first.box: first}
        found = parts.get(own)
        if found is None:
            found = parts[own] = Area(own)
        return found

    def _note_operand(self, instruction: Instruction, operand: object) -> None:
        if operand is None:
            return
        if isinstance(operand, View):
            name = instruction.row.name
            raise TypeError(f"{name}: operand is a view: effects are known after lower")
        if type(operand) is Register:
            self.stateful.add(instruction.number)

    def _with_offsets(self, instruction: Instruction, uses: list[Use]) -> tuple[Touch, ...]:
        """Return the same as `touches` for an instruction with run-time offsets, which it also
        reads.
        """
        touches: list[Touch] = []
        for index, reads, writes in sorted(uses):
            operand = instruction.operands[index]
            if type(operand) is not AccessPattern:
                continue
            touches.append(Touch(operand, reads, writes, self._area(operand)))
            if operand.dynamic is not None:
                source = operand.dynamic.source
                if isinstance(source, AccessPattern):
                    touches.append(Touch(source, True, False, self._area(source)))
                else:
                    self.stateful.add(instruction.number)
        return tuple(sorted(touches, key=itemgetter(2)))


Touches = Mapping[int, Sequence[Touch]]
MEMO_SIZE = 8  # the bodies of one program's cores


class _BodyTouches:
    """The touches of all instructions of a body, and the cells of the tensors they access."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        memo = _TouchMemo(target)
        touches = memo.touches
        self.touches = {i.number: touches(i) for i in instructions(body)}
        self.stateful = memo.stateful
        self.cells = _number_cells(memo.first, memo.parts)


def _number_cells(
    first: Mapping[int, Area], parts: Mapping[int, Mapping[Box, Area]]
) -> dict[int, Sequence[int]]:
    """Fill in the cells of every area, and return the cells of each tensor.

    Most tensors are always accessed whole: their single area already has its cell.
    """
    cells_by_tensor: dict[int, Sequence[int]] = {
        tensor: area.cells for tensor, area in first.items()
    }
    count = len(first)
    for tensor, areas in parts.items():
        cells = Cells(areas, count)
        for area in areas.values():
            area.cells = cells[area.box]
        cells_by_tensor[tensor] = range(count, count + cells.count)
        count += cells.count
    return cells_by_tensor


_recent: list[_BodyTouches] = []


def _body_touches(body: Body, target: Target) -> _BodyTouches:
    """Return the memoised reading of `body`. The stages after lower share its bodies."""
    memoised = _memoised(body, target)
    if memoised is not None:
        return memoised
    _recent.append(_BodyTouches(body, target))
    del _recent[:-MEMO_SIZE]
    return _recent[-1]


def _memoised(body: Body, target: Target) -> _BodyTouches | None:
    for recent in _recent:
        if recent.body is body and recent.target is target:
            return recent
    return None


def forget() -> None:
    """Drop the memoised readings, to free memory once the bodies are no longer used."""
    _recent.clear()


def touches_of(body: Body, target: Target) -> Touches:
    """Return the accesses of all instructions of `body`, by instruction number."""
    return _body_touches(body, target).touches


def cells_of(body: Body, target: Target) -> Mapping[int, Sequence[int]]:
    """Return the cells of every tensor that `body` accesses, by tensor number.

    A tensor is cut at the boundaries of all accesses to it.
    """
    return _body_touches(body, target).cells


def stateful_of(body: Body, target: Target) -> Collection[int]:
    """Return the numbers of the instructions of `body` that have register operands."""
    return _body_touches(body, target).stateful


def state_effects(instruction: Instruction, target: Target) -> Effects:
    """Return the engine state and registers that `instruction` reads and writes."""
    row = instruction.row
    effects = NOTHING if row.effects is no_effects else row.effects(instruction.facts(target))
    registers = registers_of(instruction)
    if not registers:
        return effects
    reads = tuple(f"register {number}" for number, access in registers if access.reads)
    writes = tuple(f"register {number}" for number, access in registers if access.writes)
    return Effects(effects.reads + reads, effects.writes + writes)


NOTHING = Effects()


def tensors_of(body: Body, target: Target) -> Collection[int]:
    """Return the numbers of the tensors that `body` accesses.

    A body whose accesses are not memoised is not read for that: its operands are enough.
    """
    memoised = _memoised(body, target)
    if memoised is not None:
        return memoised.cells.keys()
    tensors: set[int] = set()
    for instruction in instructions(body):
        for operand in instruction.operands:
            if type(operand) is not AccessPattern:
                continue
            tensors.add(operand.tensor.number)
            if operand.dynamic is not None and type(operand.dynamic.source) is AccessPattern:
                tensors.add(operand.dynamic.source.tensor.number)
    return tensors


def registers_of(instruction: Instruction) -> list[tuple[int, Access]]:
    """Return the number and access of each register operand, including run-time offsets."""
    registers = []
    for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
        if type(operand) is Register:
            registers.append((operand.number, rule.access))
        elif type(operand) is AccessPattern and operand.dynamic is not None:
            source = operand.dynamic.source
            if isinstance(source, Register):
                registers.append((source.number, Access.READ))
    return registers
