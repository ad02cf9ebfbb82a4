"""What an instruction does to memory and engine state: the one reading of a row's effects.

depend, allocate and schedule ask here, so that a row's `access` and `effects` mean the same to
all of them. The proofs have a reader of their own.
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


class Touch(NamedTuple):
    """One access to a tensor, the box that covers it, and the cells that the box is made of, which
    are numbered over all tensors of a body.
    """

    pattern: AccessPattern
    reads: bool
    writes: bool
    area: Box
    cells: list[int]


_FLAGS = {
    Access.READ: (True, False),
    Access.WRITE: (False, True),
    Access.UPDATE: (True, True),
    Access.ORDER: (True, True),  # as if it read and wrote: nothing passes it
}
# The place of an operand, the touches like that by the pattern's identity, is it read, written?
Use = tuple[int, dict[int, Touch], bool, bool]


Area = tuple[Box, list[int]]  # a box, and its cells as soon as all boxes are known


class _Known:
    """What was found out for earlier instructions of a body, which keeps its patterns alive."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.first: dict[int, Area] = {}  # of each tensor, what is touched first
        self.parts: dict[int, dict[Box, Area]] = {}  # of those that have several, all areas
        self.stateful: set[int] = set()  # instructions that have registers
        self._fixed: dict[Row, list[Use]] = {}
        self._uses: dict[tuple[Row, tuple[Any, ...]], list[Use]] = {}
        # By the pattern's identity: lower shares equal ones.
        self._area_of: dict[int, Area] = {}
        self._touches: tuple[tuple[dict[int, Touch], ...], ...] = (({}, {}), ({}, {}))

    def uses(self, instruction: Instruction) -> list[Use]:
        """What happens to each operand, which attributes may decide; what is only read first."""
        row = instruction.row
        if row.access is no_access:
            if row not in self._fixed:
                self._fixed[row] = self._each([o.access for o in row.operands])
            return self._fixed[row]
        key = (row, instruction.attributes)
        if key not in self._uses:
            facts = instruction.facts(self.target)
            self._uses[key] = self._each([row.access_of(o, facts) for o in row.operands])
        return self._uses[key]

    def _each(self, accesses: Sequence[Access]) -> list[Use]:
        """In the order of the operands, but that those that are written come last."""
        found = [(place, *_FLAGS[access]) for place, access in enumerate(accesses)]
        return [(at, self._touches[r][w], r, w) for at, r, w in sorted(found, key=itemgetter(2))]

    def touches(self, instruction: Instruction) -> list[Touch]:
        """The accesses of `instruction`, reads first, with those of run-time offsets."""
        operands, found = instruction.operands, list[Touch]()
        uses = self._fixed.get(instruction.row) or self.uses(instruction)
        for place, known, reads, writes in uses:
            operand = operands[place]
            touch = known.get(id(operand))
            if touch is None:
                if type(operand) is not AccessPattern:
                    self._no_pattern(instruction, operand)
                    continue
                if operand.dynamic is not None:
                    return self._with_offsets(instruction, uses)
                touch = known[id(operand)] = self._touch(operand, reads, writes)
            found.append(touch)
        return found

    def _touch(self, pattern: AccessPattern, reads: bool, writes: bool) -> Touch:
        area = self._area_of.get(id(pattern))
        if area is None:
            area = self._area_of[id(pattern)] = self._area(pattern)
        own, cells = area
        return tuple.__new__(Touch, (pattern, reads, writes, own, cells))

    def _area(self, pattern: AccessPattern) -> Area:
        """One object for all equal areas of a tensor."""
        tensor, own = pattern.tensor.number, box(pattern)
        first = self.first.get(tensor)
        if first is None:
            first = self.first[tensor] = (own, [len(self.first)])
        if first[0] == own:
            return first
        parts = self.parts.get(tensor)
        if parts is None:
            parts = self.parts[tensor] = {first[0]: first}
        return parts.setdefault(own, (own, []))

    def _no_pattern(self, instruction: Instruction, operand: object) -> None:
        if operand is None:
            return
        if isinstance(operand, View):
            name = instruction.row.name
            raise TypeError(f"{name}: operand is a view: effects are known after lower")
        if type(operand) is Register:
            self.stateful.add(instruction.number)

    def _with_offsets(self, instruction: Instruction, uses: list[Use]) -> list[Touch]:
        """As `touches`, with the reads of what run-time offsets stand in."""
        found: list[Touch] = []
        for place, _, reads, writes in sorted(uses, key=itemgetter(0)):
            operand = instruction.operands[place]
            if type(operand) is not AccessPattern:
                continue
            found.append(self._touch(operand, reads, writes))
            if operand.dynamic is not None:
                source = operand.dynamic.source
                if isinstance(source, AccessPattern):
                    found.append(self._touch(source, True, False))
                else:
                    self.stateful.add(instruction.number)
        return sorted(found, key=itemgetter(2))


Touches = Mapping[int, Sequence[Touch]]
REMEMBERED = 8  # bodies: those of one program's cores


class _Reading:
    """What all instructions of a body touch, and the cells of the tensors that they touch."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        known = _Known(target)
        touches = known.touches
        self.touches = {i.number: touches(i) for i in instructions(body)}
        self.stateful = known.stateful
        self.cells = _cut(known.first, known.parts)


def _cut(
    first: Mapping[int, Area], parts: Mapping[int, Mapping[Box, Area]]
) -> dict[int, Sequence[int]]:
    """Gives every area its cells; those of each tensor. Most tensors are always accessed whole:
    their one area has its cell already.
    """
    found: dict[int, Sequence[int]] = {tensor: cells for tensor, (_, cells) in first.items()}
    count = len(first)
    for tensor, areas in parts.items():
        cells = Cells(areas)
        for area, own in areas.values():
            own[:] = [count + number for number in cells[area]]
        found[tensor] = range(count, count + cells.count)
        count += cells.count
    return found


_recent: list[_Reading] = []


def _reading(body: Body, target: Target) -> _Reading:
    """The stages from depend on share the bodies that lower made, so each is read only once."""
    for known in _recent:
        if known.body is body and known.target is target:
            return known
    _recent.append(_Reading(body, target))
    del _recent[:-REMEMBERED]
    return _recent[-1]


def forget() -> None:
    """Gives up what was read: nobody will ask for these bodies again."""
    _recent.clear()


def touches_of(body: Body, target: Target) -> Touches:
    """The accesses of all instructions of `body`, by number."""
    return _reading(body, target).touches


def cells_of(body: Body, target: Target) -> Mapping[int, Sequence[int]]:
    """The cells of every tensor that `body` touches, by number: it is cut along the sides of all
    its accesses.
    """
    return _reading(body, target).cells


def stateful_of(body: Body, target: Target) -> Collection[int]:
    """The instructions of `body` that have registers among their operands, by number."""
    return _reading(body, target).stateful


def state_effects(instruction: Instruction, target: Target) -> Effects:
    """Engine state and registers that `instruction` reads and writes."""
    row = instruction.row
    effects = NOTHING if row.effects is no_effects else row.effects(instruction.facts(target))
    registers = registers_of(instruction)
    if not registers:
        return effects
    reads = tuple(f"register {number}" for number, access in registers if access.reads)
    writes = tuple(f"register {number}" for number, access in registers if access.writes)
    return Effects(effects.reads + reads, effects.writes + writes)


NOTHING = Effects()


def registers_of(instruction: Instruction) -> list[tuple[int, Access]]:
    """The registers among the operands by number, those of run-time offsets included."""
    found = []
    for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
        if type(operand) is Register:
            found.append((operand.number, rule.access))
        elif type(operand) is AccessPattern and operand.dynamic is not None:
            source = operand.dynamic.source
            if isinstance(source, Register):
                found.append((source.number, Access.READ))
    return found
