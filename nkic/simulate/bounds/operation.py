"""An instruction as a rule of `bounds` sees it: its operands as values with bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nkic.machine.dtypes import FLOAT32, DType
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.simulate.bounds.algebra import Bounded, Doubles, exact
from nkic.simulate.bounds.store import Store
from nkic.simulate.semantics.mx import mx_numbers
from nkic.simulate.storage.memory import Memory
from nkic.simulate.tile import Tile

Lanes = dict[str, Bounded]  # accumulators of an engine: 128 magnitudes and bounds


class Operation:
    """An instruction before it runs."""

    def __init__(
        self, record: InstructionRecord, memory: Memory, store: Store, lanes: Lanes
    ) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no operands")
        self.row = row
        self.lanes = lanes
        self._memory, self._store = memory, store
        self.operands = dict(zip(row.operand_index, record.operands, strict=False))
        self.attributes: Mapping[str, Any] = dict(
            zip(row.attribute_index, record.attributes, strict=True)
        )

    def pattern(self, name: str) -> PatternRecord | None:
        """Return the operand if it is a tile."""
        operand = self.operands.get(name)
        return operand if type(operand) is PatternRecord else None

    def dtype(self, name: str) -> DType:
        """Return the element type of a tile, or float32 for any other operand."""
        operand = self.pattern(name)
        return operand.dtype if operand is not None else FLOAT32

    def first(self, name: str) -> int:
        """Return the first partition of an on-chip tile."""
        operand = self.pattern(name)
        return self._memory.form(operand).first if operand is not None else 0

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return (partitions, *free dimensions), HBM (1, *dimensions)."""
        operand = self.pattern(name)
        return self._memory.form(operand).shape if operand is not None else ()

    def get_error(self, name: str) -> Doubles:
        """Return the bounds of a tile of any element type."""
        operand = self.pattern(name)
        return self._store.read(operand) if operand is not None else np.zeros((1, 1))

    def scaled(self, name: str) -> Doubles:
        """Return the numbers of a packed tile and its scales, as the tensor engine uses them."""
        operands = (self.pattern(name), self.pattern(f"{name}_scale"))
        data, scale = (Tile(self._memory, tile).bound() for tile in operands if tile is not None)
        return mx_numbers(data, scale)()

    def get(self, name: str, default: float = 0.0) -> Bounded:
        """Return a tile as (partitions, elements), or a number as a 0-dimensional array."""
        operand = self.operands.get(name)
        if type(operand) is PatternRecord:
            return Bounded(values_of(self._memory, operand), self._store.read(operand).copy())
        number = float(operand) if isinstance(operand, int | float) else default
        return exact(np.array(float(np.float32(number))))


def values_of(memory: Memory, pattern: PatternRecord) -> Doubles:
    """Return the values of a tile."""
    memory.scratch.begin()
    operand = Tile(memory, pattern).bound().load()()
    return np.array(operand, np.float64)


Errors = Mapping[str, Doubles]
BoundRule = Callable[[Operation], Errors | None]
RULES: dict[str, BoundRule] = {}


def bounded(*names: str) -> Callable[[BoundRule], BoundRule]:
    """Register a rule for the bounds of rows' results; it returns None if it cannot bound them."""

    def register(rule: BoundRule) -> BoundRule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules for {name}")
            RULES[name] = rule
        return rule

    return register
