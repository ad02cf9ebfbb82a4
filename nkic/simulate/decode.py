"""Turns the records of a verified file into steps: Python callables without arguments.

The semantics of a row is a function in simulate/semantics, registered under the row's name with
`@semantics("name")`. It is called with a `Decoded` instruction when the file is loaded, and returns
the step that runs at every execution. Instructions that differ in their addresses alone share one
step, whose tiles are bound to different memory each time (`plans.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import ProgramFault, make
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.machine.operators import SummationOrder
from nkic.machine.targets import Target
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.simulate.printing import Prints
from nkic.simulate.remarks import Remarks
from nkic.simulate.scratch import Scratch
from nkic.simulate.storage import lost
from nkic.simulate.storage.memory import Memory
from nkic.simulate.tile import Tile

Step = Callable[[], None]


class UnsetRegister(ProgramFault):
    """A register is read that nothing has set. The event loop adds the place."""

    def __init__(self) -> None:
        super().__init__([make("uninitialised-read", self.TEXT, help=self.HELP)])

    TEXT = "a register is read before anything has set it"
    HELP = "load it first with nisa.register_load, or pass nisa.register_alloc a value"


class Registers:
    """The registers as one stream sees them.

    A core's streams share their values: a device would keep a copy for each engine and load all of
    them, which is free here (assumed; docs/fidelity.md). Loop counters are private to the stream.
    `unset`, shared as well, holds those whose value is arbitrary; None if reading them is no fault.
    """

    def __init__(self, shared: list[int], unset: set[int] | None = None) -> None:
        self.shared = shared
        self.unset = unset
        self.counters: dict[int, int] = {}

    def __getitem__(self, number: int) -> int:
        if self.unset and number in self.unset and number not in self.counters:
            raise UnsetRegister
        return self.counters[number] if number in self.counters else self.shared[number]

    def __setitem__(self, number: int, value: int) -> None:
        self.shared[number] = value
        if self.unset:
            self.unset.discard(number)

    def create(self, number: int) -> None:
        """Begin a register that has no value yet."""
        self.shared[number] = 0
        if self.unset is not None:
            self.unset.add(number)


class EngineState:
    """The state that an engine keeps between instructions: registers, and named arrays.

    Output of device prints goes to `prints`, remarks on a step to `remarks`. `rank` is the rank
    that the engine belongs to.
    """

    def __init__(
        self,
        registers: Registers,
        core: int = 0,
        prints: Prints | None = None,
        rank: int = 0,
        remarks: Remarks | None = None,
    ) -> None:
        self.rank = rank
        self.registers = registers
        self.core = core
        self.prints = prints if prints is not None else Prints()
        self.remarks = remarks if remarks is not None else Remarks()
        self.arrays: dict[str, NDArray[Any]] = {}
        self._makers: dict[str, Callable[[], NDArray[Any]]] = {}

    def array(self, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array called `name`, made at first use."""
        if name not in self.arrays:
            self.arrays[name], self._makers[name] = make(), make
        return self.arrays[name]

    def reset(self) -> None:
        """Reset the arrays to their initial contents, in place, since steps hold views of them."""
        for name, array in self.arrays.items():
            np.copyto(array, self._makers[name]())


Value = Tile | Register | float | int | None


NOT_MEASURED: Mapping[str, SummationOrder] = {}


class Decoded(NamedTuple):
    """An instruction with its operands bound to memory, named as in the row.

    `accumulate` is the requested order of additions.
    """

    row: Row
    target: Target
    engine: Engine
    operands: Mapping[str, Value]
    attributes: Mapping[str, Any]
    state: EngineState
    scratch: Scratch
    accumulate: SummationOrder | None = None

    def order(self, measured: Mapping[str, SummationOrder] = NOT_MEASURED) -> SummationOrder:
        """Return the summation order: the requested one, or else that `measured` on this target."""
        return self.accumulate or measured.get(self.target.name, "exact")

    def tile(self, name: str) -> Tile:
        """Return the operand `name`, which verification has shown to be a tile."""
        operand = self.operands[name]
        if type(operand) is not Tile:
            raise TypeError(f"{self.row.name}: {name} is not a tile")
        return operand

    def maybe(self, name: str) -> Tile | None:
        """Return the operand `name` if it is a tile, else None."""
        operand = self.operands[name]
        return operand if type(operand) is Tile else None

    def tiles(self) -> list[Tile]:
        """Return all operands that are tiles."""
        return [operand for operand in self.operands.values() if type(operand) is Tile]

    def number(self, name: str, default: float = 0.0) -> float:
        """Return the operand `name` as a number."""
        operand = self.operands[name]
        return operand if isinstance(operand, int | float) else default

    def read(self, name: str) -> int:
        """Return the current value of the integer operand `name`: a register or a number."""
        operand = self.operands[name]
        if type(operand) is Register:
            return self.state.registers[operand.number]
        return int(self.number(name))


Semantics = Callable[[Decoded], Step]
SEMANTICS: dict[str, Semantics] = {}


def semantics(name: str) -> Callable[[Semantics], Semantics]:
    """Register the semantics of a row."""

    def register(function: Semantics) -> Semantics:
        if name in SEMANTICS:
            raise ValueError(f"two semantics for {name}")
        SEMANTICS[name] = function
        return function

    return register


class Rendezvous(NamedTuple):
    """One core's part in an instruction that all cores run together.

    `offer` returns the core's contribution; then `accept` takes all contributions, by core. With a
    `group` of ranks, one core of each rank contributes, and `accept` takes them by rank, in the
    order of the group. `accept` returns which elements of dst it wrote, or None for all of them. It
    raises `Refused` if the contributions cannot be used. `source` is the core whose src becomes dst
    unchanged, including uninitialised bytes.
    """

    offer: Callable[[], Any]
    accept: Callable[[Mapping[int, Any]], NDArray[np.bool_] | None]
    group: tuple[int, ...] | None = None
    source: int | None = None


class Refused(Exception):
    """The contributions do not match; the message says why."""


RendezvousSemantics = Callable[[Decoded], Rendezvous]
RENDEZVOUS: dict[str, RendezvousSemantics] = {}


def rendezvous(name: str) -> Callable[[RendezvousSemantics], RendezvousSemantics]:
    """Register the semantics of a row that all cores run together."""

    def register(function: RendezvousSemantics) -> RendezvousSemantics:
        if name in RENDEZVOUS:
            raise ValueError(f"two meanings for {name}")
        RENDEZVOUS[name] = function
        return function

    return register


Tiles = dict[PatternRecord, Tile]


class Decoder:
    """Decodes instructions."""

    def __init__(
        self,
        memory: Memory,
        target: Target,
        precise: bool,
        accumulate: SummationOrder | None = None,
    ) -> None:
        self.memory = memory
        self.target = target
        self.precise = precise
        self.accumulate = accumulate

    def step(
        self, record: InstructionRecord, engine: Engine, state: EngineState
    ) -> tuple[Step, Tiles]:
        """Return the callable that executes `record`, which has a row, and its tiles."""
        decoded, tiles = self._decoded(record, engine, state)
        step = SEMANTICS[decoded.row.name](decoded)
        return lost.watched(
            step, decoded.row, decoded.operands, decoded.attributes, state.remarks
        ), tiles

    def rendezvous(
        self, record: InstructionRecord, engine: Engine, state: EngineState
    ) -> tuple[Rendezvous, Tiles]:
        """Return a core's part in `record`, which all cores run together, and its tiles."""
        decoded, tiles = self._decoded(record, engine, state)
        return RENDEZVOUS[decoded.row.name](decoded), tiles

    def _decoded(
        self, record: InstructionRecord, engine: Engine, state: EngineState
    ) -> tuple[Decoded, Tiles]:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no step")
        self.memory.scratch.begin()
        patterns = dict.fromkeys(p for p in record.operands if isinstance(p, PatternRecord))
        tiles = {pattern: Tile(self.memory, pattern, self.precise) for pattern in patterns}
        operands: dict[str, Value] = {
            name: tiles[value] if isinstance(value, PatternRecord) else value
            for name, value in zip(row.operand_index, record.operands, strict=False)
        }
        attributes = dict(zip(row.attribute_index, record.attributes, strict=True))
        lost.note(row, operands, state.remarks)
        decoded = Decoded(
            row,
            self.target,
            engine,
            operands,
            attributes,
            state,
            self.memory.scratch,
            self.accumulate,
        )
        return decoded, tiles
