"""An instruction as a rule of `field` sees it: its operands as elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nkic.machine.dtypes import DType
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.simulate.field.elements import Elements, Size, constant, made
from nkic.simulate.field.modular import LEVELS
from nkic.simulate.field.store import Store
from nkic.simulate.storage.memory import PARTITIONS, Memory

Lanes = dict[str, Elements]  # accumulators of an engine, (128, 1)


class Operation:
    """An instruction before it runs."""

    def __init__(
        self, record: InstructionRecord, memory: Memory, store: Store, lanes: Lanes
    ) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no operands")
        self.row, self.place, self.lanes = row, record.place, lanes
        self._memory, self._store = memory, store
        self.operands = dict(zip(row.operand_index, record.operands, strict=False))
        self.attributes: Mapping[str, Any] = dict(
            zip(row.attribute_index, record.attributes, strict=True)
        )

    def pattern(self, name: str) -> PatternRecord | None:
        """Return the operand if it is a tile."""
        operand = self.operands.get(name)
        return operand if type(operand) is PatternRecord else None

    def dtype(self, name: str) -> DType | None:
        """Return the element type of a tile."""
        operand = self.pattern(name)
        return operand.dtype if operand is not None else None

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return (partitions, *free dimensions), HBM (1, *dimensions)."""
        operand = self.pattern(name)
        return self._memory.form(operand).shape if operand is not None else ()

    def is_on_chip(self, name: str) -> bool:
        """Return whether the operand is a tile in SBUF or PSUM."""
        operand = self.pattern(name)
        return operand is not None and self._store.is_on_chip(operand.tensor)

    def get(self, name: str, default: float = 0.0) -> Elements:
        """Return a tile as (partitions, elements), or a number as (1, 1)."""
        operand = self.operands.get(name)
        if type(operand) is PatternRecord:
            found = self._store.read(operand)
            return found if found is not None else self._reinterpreted(operand)
        number = float(operand) if isinstance(operand, int | float) else default
        return constant(np.full((1, 1), float(np.float32(number))))

    def _reinterpreted(self, pattern: PatternRecord) -> Elements:
        """Return undecided elements: the bits of a tensor in another size."""
        shape = self._store.shape(pattern)
        zeros = np.zeros((LEVELS, *shape), np.int64)
        return made(zeros, np.full(shape, np.nan), Size()).undecided(self.place)

    def first(self, name: str) -> int:
        """Return the first partition of an on-chip tile."""
        operand = self.pattern(name)
        return self._memory.form(operand).first if operand is not None else 0

    def register(self, name: str, identity: float, data: str) -> tuple[Elements, slice]:
        """Return an engine's accumulators, (128, 1), and the lanes of a tile."""
        fresh = constant(np.full((PARTITIONS, 1), identity))
        first = self.first(data)
        lanes = slice(first, first + self.sizes(data)[0])
        return self.lanes.setdefault(name, fresh), lanes


Results = Mapping[str, Elements]
FieldRule = Callable[[Operation], Results | None]
RULES: dict[str, FieldRule] = {}
UNDECIDED: dict[str, str] = {}


def over_field(*names: str) -> Callable[[FieldRule], FieldRule]:
    """Register a rule for the results of rows; it returns None if the field has no meaning for
    them.
    """

    def register(rule: FieldRule) -> FieldRule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules for {name}")
            RULES[name] = rule
        return rule

    return register


def undecided(why: str, *names: str) -> None:
    """Register rows whose results are those of the run if all that they read is constant, and
    have no meaning over the field otherwise.
    """
    UNDECIDED.update(dict.fromkeys(names, why))
