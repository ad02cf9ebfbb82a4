"""Effects of instructions on memory and engine state, derived from their rows.

depend, allocate and schedule all use this module, so that a row's `access` and `effects` have one
meaning. The proofs derive effects independently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from nkic.machine.operands import Access, Effects, Register, Row, no_access, no_effects
from nkic.machine.targets import Target
from nkic.program.overlap import Box, Cells, are_tiles, box
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Operand,
    Tensor,
    View,
    instructions,
)


class Touch(NamedTuple):
    """One access to a tensor."""

    pattern: AccessPattern
    reads: bool
    writes: bool

    @property
    def box(self) -> Box:
        return box(self.pattern)


_FLAGS = {
    Access.READ: (True, False),
    Access.WRITE: (False, True),
    Access.UPDATE: (True, True),
    Access.ORDER: (True, True),  # as a read and a write: no access moves across it
}
Use = tuple[int, bool, bool]  # an operand's index, whether it is read, whether it is written
Uses = Sequence[Use]
Operands = Sequence[Operand]


class _Uses:
    """Memoised accesses of instructions to their operands."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.fixed: dict[Row, Uses] = {}  # of rows whose attributes do not decide them
        self._decided: dict[tuple[Row, tuple[Any, ...]], Uses] = {}

    def of(self, instruction: Instruction) -> Uses:
        """Return the access to each operand, which attributes may decide; pure reads first."""
        row = instruction.row
        if row.access is no_access:
            if row not in self.fixed:
                self.fixed[row] = _ordered([o.access for o in row.operands])
            return self.fixed[row]
        key = (row, instruction.attributes)
        if key not in self._decided:
            facts = instruction.facts(self.target)
            self._decided[key] = _ordered([row.access_of(o, facts) for o in row.operands])
        return self._decided[key]


def _ordered(accesses: Sequence[Access]) -> Uses:
    """Return one use per operand, in operand order except that writes come last."""
    uses = [(index, *_FLAGS[access]) for index, access in enumerate(accesses)]
    return sorted(uses, key=itemgetter(2))


class Accesses:
    """The accesses of a body to tensors, read once, and the cells of these tensors.

    Patterns are known by identity, as lower interns equal ones; the body keeps them alive. Most
    tensors are accessed by one pattern: such a tensor is a single cell, and has no boxes. The first
    cells are those of the tensors in order of their first access; the cells of a tensor with
    several patterns follow, unless it is in HBM and nothing writes it, so that nothing conflicts.
    """

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.stateful: set[int] = set()  # instructions with register operands
        self.first: dict[Tensor, AccessPattern] = {}  # the first pattern, in order of first access
        self.begun: list[int] = []  # the instructions of these first accesses
        self.read_first: set[Tensor] = set()  # tensors whose first instruction reads them
        self.parts: dict[Tensor, list[AccessPattern]] = {}  # the patterns, if there are several
        self.last: dict[int, int] = {}  # by pattern: the last instruction
        self._last_moving: dict[int, int] = {}  # as `last`, for patterns with run-time offsets
        self._written: set[int] = set()  # patterns
        self._moving: dict[int, tuple[Operands, Uses]] = {}  # instructions with run-time offsets
        self._uses = _Uses(target)
        self._read(body)
        self.last |= self._last_moving
        self.cells: dict[int, tuple[int, ...]] = {}  # by pattern
        self.cut: dict[int, range] = {}  # the cells of tensors with several patterns, by number
        self._number_cells()

    def is_of(self, body: Body, target: Target) -> bool:
        """Return whether these are the accesses of `body` on `target`."""
        return self.body is body and self._uses.target is target

    def of(self, instruction: Instruction) -> tuple[Operands, Uses]:
        """Return the operands of `instruction` and their uses, reads first.

        The sources of run-time offsets are operands, too.
        """
        if instruction.number in self._moving:
            return self._moving[instruction.number]
        uses = self._uses.fixed.get(instruction.row) or self._uses.of(instruction)
        return instruction.operands, uses

    def touches(self, instruction: Instruction) -> list[Touch]:
        """Return the accesses of `instruction` to tensors, reads first."""
        operands, uses = self.of(instruction)
        return [
            Touch(operand, reads, writes)
            for index, reads, writes in uses
            if type(operand := operands[index]) is AccessPattern
        ]

    def written_by(self, instruction: Instruction) -> list[AccessPattern]:
        operands, uses = self.of(instruction)
        return [
            operand
            for index, _, writes in uses
            if writes and type(operand := operands[index]) is AccessPattern
        ]

    @cached_property
    def by_number(self) -> Touches:
        return {item.number: self.touches(item) for item in instructions(self.body)}

    def _read(self, body: Body) -> None:
        fixed, first, last = self._uses.fixed, self.first, self.last
        for instruction in instructions(body):
            number, operands = instruction.number, instruction.operands
            for index, reads, writes in fixed.get(instruction.row) or self._uses.of(instruction):
                operand = operands[index]
                pattern = id(operand)
                if pattern not in last:
                    if type(operand) is not AccessPattern:
                        self._note_operand(instruction, operand)
                        continue
                    if operand.dynamic is not None:
                        self._read_with_offsets(instruction)
                        break
                    if operand.tensor in first:
                        self._add_part(operand)
                    else:
                        self._begin(operand, number, reads)
                last[pattern] = number
                if writes:
                    self._written.add(pattern)

    def _begin(self, pattern: AccessPattern, number: int, reads: bool) -> None:
        """Record the first access to a tensor."""
        self.first[pattern.tensor] = pattern
        self.begun.append(number)
        if reads:
            self.read_first.add(pattern.tensor)

    def _add_part(self, pattern: AccessPattern) -> None:
        tensor = pattern.tensor
        patterns = self.parts.get(tensor)
        if patterns is None:
            self.parts[tensor] = [self.first[tensor], pattern]
        else:
            patterns.append(pattern)

    def _note_operand(self, instruction: Instruction, operand: object) -> None:
        if operand is None:
            return
        if isinstance(operand, View):
            name = instruction.row.name
            raise TypeError(f"{name}: operand is a view: effects are known after lower")
        if type(operand) is Register:
            self.stateful.add(instruction.number)

    def _read_with_offsets(self, instruction: Instruction) -> None:
        """Record the accesses of an instruction with run-time offsets, which it also reads."""
        operands, uses = list(instruction.operands), list[Use]()
        for use in sorted(self._uses.of(instruction)):
            uses.append(use)
            operand = operands[use[0]]
            if type(operand) is not AccessPattern:
                self._note_operand(instruction, operand)
            elif operand.dynamic is not None:
                uses.append((len(operands), True, False))
                operands.append(operand.dynamic.source)
                self._note_operand(instruction, operand.dynamic.source)
        self._moving[instruction.number] = operands, sorted(uses, key=itemgetter(2))
        for touch in self.touches(instruction):
            self._add_touch(touch, instruction.number)

    def _add_touch(self, touch: Touch, number: int) -> None:
        """Record an access of an instruction with run-time offsets."""
        pattern, reads, writes = touch
        # Kept apart, so that `_read` finds the offsets of the next instruction with this pattern.
        last = self.last if pattern.dynamic is None else self._last_moving
        if pattern.tensor not in self.first:
            self._begin(pattern, number, reads)
        elif id(pattern) not in last and pattern is not self.first[pattern.tensor]:
            self._add_part(pattern)
        elif reads and number == self.begun[-1]:
            self.read_first.add(pattern.tensor)  # perhaps begun by this instruction
        last[id(pattern)] = number
        if writes:
            self._written.add(id(pattern))

    def _number_cells(self) -> None:
        """Set the cells of patterns, and those of tensors with several patterns."""
        self.count = len(self.first)
        self.cells = dict(zip(map(id, self.first.values()), zip(range(self.count)), strict=True))
        for tensor, patterns in self.parts.items():
            if not tensor.on_chip and self._written.isdisjoint(map(id, patterns)):
                self.cells |= dict.fromkeys(map(id, patterns), ())
                self.cut[tensor.number] = range(0)
                continue
            if are_tiles(patterns):
                numbers = range(self.count, self.count + len(patterns))
                self.cells |= zip(map(id, patterns), zip(numbers), strict=True)
                self.cut[tensor.number] = numbers
                self.count += len(patterns)
                continue
            boxes = [box(pattern) for pattern in patterns]
            cells = Cells(boxes, self.count)
            for pattern, own in zip(patterns, boxes, strict=True):
                self.cells[id(pattern)] = cells[own]
            self.cut[tensor.number] = range(self.count, self.count + cells.count)
            self.count += cells.count


Touches = Mapping[int, Sequence[Touch]]
MEMO_SIZE = 8  # the bodies of one program's cores
_recent: list[Accesses] = []


def accesses_of(body: Body, target: Target) -> Accesses:
    """Return the memoised accesses of `body`. The stages after lower share its bodies."""
    memoised = _memoised(body, target)
    if memoised is not None:
        return memoised
    _recent.append(Accesses(body, target))
    del _recent[:-MEMO_SIZE]
    return _recent[-1]


def _memoised(body: Body, target: Target) -> Accesses | None:
    return next((recent for recent in _recent if recent.is_of(body, target)), None)


def forget() -> None:
    """Drop the memoised accesses, to free memory once the bodies are no longer used."""
    _recent.clear()


def touches_of(body: Body, target: Target) -> Touches:
    """Return the accesses of all instructions of `body`, by instruction number."""
    return accesses_of(body, target).by_number


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
        return {tensor.number for tensor in memoised.first}
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
