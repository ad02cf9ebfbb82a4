"""Turns the records of a verified file into steps: one Python callable per instruction.

A row's semantics is a function of the row's name in simulate/semantics, registered with
`@semantics("name")`. It gets a `Decoded` instruction once, at load, and returns the step that
runs at every execution; all look-ups and window making happen before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.neff.records import InstructionRecord, OperandRecord, PatternRecord
from nkic.simulate.memory import Memory
from nkic.simulate.tile import Tile

Step = Callable[[], None]


class EngineState:
    """What an engine keeps between instructions: registers, and named arrays."""

    def __init__(self, registers: int) -> None:
        self.registers = [0] * registers
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def array(self, name: str, make: Callable[[], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """The array called `name`, made at first use."""
        if name not in self.arrays:
            self.arrays[name] = make()
        return self.arrays[name]


@dataclass(frozen=True)
class Decoded:
    """An instruction with its operands bound to memory. Names are the row's."""

    row: Row
    target: Target
    engine: Engine
    operands: Mapping[str, Tile | Register | float | int | None]
    attributes: Mapping[str, Any]
    state: EngineState

    def tile(self, name: str) -> Tile:
        """The operand `name`, which verification has shown to be a tile."""
        operand = self.operands[name]
        if not isinstance(operand, Tile):
            raise TypeError(f"{self.row.name}: {name} is not a tile")
        return operand

    def maybe(self, name: str) -> Tile | None:
        """The operand `name` if it is a tile."""
        operand = self.operands[name]
        return operand if isinstance(operand, Tile) else None

    def number(self, name: str, default: float = 0.0) -> float:
        """The operand `name` as a number."""
        operand = self.operands[name]
        return default if operand is None or isinstance(operand, Tile | Register) else operand


Semantics = Callable[[Decoded], Step]
SEMANTICS: dict[str, Semantics] = {}


def semantics(name: str) -> Callable[[Semantics], Semantics]:
    """Registers a row's meaning."""

    def register(function: Semantics) -> Semantics:
        if name in SEMANTICS:
            raise ValueError(f"two semantics for {name}")
        SEMANTICS[name] = function
        return function

    return register


@dataclass(frozen=True)
class Decoder:
    """Decodes the instructions of one core."""

    memory: Memory
    target: Target
    precise: bool

    def step(self, record: InstructionRecord, engine: Engine, state: EngineState) -> Step:
        """The callable that executes `record`, which has a row."""
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no step")
        named = zip(row.operand_index, record.operands, strict=False)
        decoded = Decoded(
            row,
            self.target,
            engine,
            {name: self._operand(value) for name, value in named},
            dict(zip(row.attribute_index, record.attributes, strict=True)),
            state,
        )
        return SEMANTICS[row.name](decoded)

    def _operand(self, value: OperandRecord) -> Tile | Register | float | int | None:
        if isinstance(value, PatternRecord):
            return Tile(self.memory, value, self.precise)
        return value
