"""Plans, shared by instructions that differ in their addresses alone.

A plan holds the step, its timing and its accesses; each instruction only adds its windows onto
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.pace import Clock
from nkic.artifact.records import InstructionRecord, OperandRecord, PatternRecord
from nkic.base.diagnostics import ProgramFault, make
from nkic.machine.operands import Register, Row
from nkic.machine.operators import SummationOrder
from nkic.machine.targets import Buffer, Engine, Target
from nkic.machine.timing import Timing, activation_table
from nkic.simulate import lost
from nkic.simulate.memory import Memory, Scratch
from nkic.simulate.outcome import Prints, Remarks
from nkic.simulate.tile import Tile

# ------------------------------------------------------------------------------------------------
# Turns the records of a verified file into steps: Python callables without arguments.
# The semantics of a row is a function in simulate/semantics, registered under the row's name with
# `@semantics("name")`. It is called with a `Decoded` instruction when the file is loaded, and
# returns the step that runs at every execution. Instructions that differ in their addresses alone
# share one step, whose tiles are bound to different memory each time (`plans.py`).

Step = Callable[[], None]
Shared = TypeVar("Shared")


class UnsetRegister(ProgramFault):
    """A register is read that nothing has set. The event loop adds the place."""

    def __init__(self, registers: Registers) -> None:
        super().__init__([make("uninitialised-read", self.TEXT, help=self.HELP)])
        self.registers = registers

    TEXT = "a register is read before anything has set it"
    HELP = "load it first with nisa.register_load, or pass nisa.register_alloc a value"


class Registers:
    """The registers as one stream sees them.

    A core's streams share their values: a device would keep a copy for each engine and load all of
    them, which is free here (assumed; docs/fidelity.md). Loop counters are private to the stream.
    `unset`, shared as well, holds those whose value is arbitrary; None if reading them is no fault.
    """

    def __init__(self, shared: list[int], unset: set[int] | None = None) -> None:
        self.shared, self.unset = shared, unset
        self.counters: dict[int, int] = {}

    def __getitem__(self, number: int) -> int:
        if self.unset and number in self.unset and number not in self.counters:
            raise UnsetRegister(self)
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
        self.rank, self.registers, self.core = rank, registers, core
        self.prints = prints if prints is not None else Prints()
        self.remarks = remarks if remarks is not None else Remarks()
        self.arrays: dict[str, NDArray[Any]] = {}
        self._makers: dict[str, Callable[[], NDArray[Any]]] = {}

    def array(self, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        if name not in self.arrays:
            self.arrays[name], self._makers[name] = make(), make
        return self.arrays[name]

    def reset(self) -> None:
        """Reset the arrays to their initial contents, in place, since steps hold views of them."""
        for name, array in self.arrays.items():
            np.copyto(array, self._makers[name]())


Value = Tile | Register | float | int | None
Selections = dict[str, Callable[[], NDArray[np.bool_]]]


NOT_MEASURED: Mapping[str, SummationOrder] = {}


class Decoded(NamedTuple):
    """An instruction with its operands bound to memory, named as in the row.

    `accumulate` is the requested order of additions. `selected` returns, for operands of which the
    step reads what it selects alone, these elements in its last execution.
    """

    row: Row
    target: Target
    engine: Engine
    operands: Mapping[str, Value]
    attributes: Mapping[str, Any]
    state: EngineState
    scratch: Scratch
    accumulate: SummationOrder | None
    selected: Selections

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
        operand = self.operands[name]
        return operand if type(operand) is Tile else None

    def tiles(self) -> list[Tile]:
        return [operand for operand in self.operands.values() if type(operand) is Tile]

    def number(self, name: str, default: float = 0.0) -> float:
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


def registering(table: dict[str, Shared], *names: str) -> Callable[[Shared], Shared]:

    def register(function: Shared) -> Shared:
        for name in names:
            if name in table:
                raise ValueError(f"two functions for {name}")
            table[name] = function
        return function

    return register


semantics = partial(registering, SEMANTICS)


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


rendezvous = partial(registering, RENDEZVOUS)  # of rows that all cores run together


class Decoder:
    """What binds the instructions of all streams to memory, and times them."""

    def __init__(
        self,
        memory: Memory,
        target: Target,
        precise: bool,
        accumulate: SummationOrder | None = None,
    ) -> None:
        self.memory, self.executable, self.target = memory, memory.executable, target
        self.precise, self.accumulate = precise, accumulate
        self.clock = Clock(self.executable, target)


# --------------------------------------------------------------------------------------------------

Window = NDArray[Any]
Aliases = tuple[tuple[int, int], ...]


class Work(NamedTuple):
    """A step, and the tiles that it acts on, each with the index of its operand.

    If all cores run the instruction together, `rendezvous` takes the place of the step.
    `is_placed` tells that the memory of tiles is known before the run. `selected` is that of
    `Decoded`.
    """

    step: Step
    tiles: tuple[tuple[int, Tile], ...]
    selected: Selections
    rendezvous: Rendezvous | None = None
    is_placed: bool = False

    def windows(self, operands: tuple[OperandRecord, ...]) -> tuple[tuple[Tile, Window], ...]:
        windows = []
        for i, tile in self.tiles:
            windows.append((tile, tile.memory.cached_window(operands[i])))  # type: ignore[arg-type]
        return tuple(windows)


class Plan(NamedTuple):
    """What an instruction does, how long it takes, and what it accesses.

    `reads` and `writes` are the indices of the patterns that are read and written. `size` is the
    number of bytes that a transfer moves. `table` is the activation table that the instruction
    needs. `awaits` are those of `reads` whose values must be complete before it starts. `fills` are
    those of `writes` in PSUM, and whether the instruction also reads them.
    """

    work: Work
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    timing: Timing
    size: int
    table: str
    awaits: tuple[int, ...]
    fills: tuple[tuple[int, bool], ...]


class Planner:
    def __init__(
        self,
        decoder: Decoder,
        engine: Engine,
        state: EngineState,
        queue: int = 0,
        copies: dict[object, Plan] | None = None,
    ) -> None:
        """`copies` holds the plans of plain copies, and may be shared by planners of queues that
        the same engine triggers: such a step keeps no state of its stream.
        """
        self.decoder, self.executable, self.memory = decoder, decoder.executable, decoder.memory
        self.engine, self.queue, self.state = engine, queue, state
        self._plans: dict[object, Plan] = {}
        self._copies = self._plans if copies is None else copies
        self._works: dict[object, Work] = {}

    def plan(self, record: InstructionRecord, row: Row) -> Plan:
        """Return the plan that `record` shares with all that differ from it in addresses alone."""
        memo, key = self._copies if row.copies else self._plans, self._key(record, row)
        plan = memo.get(key)
        if plan is not None:
            return plan
        facts = self.executable.facts(record, self.decoder.target, self.engine)
        accesses = [row.access_of(rule, facts) for rule in row.operands]
        timing, size = self.decoder.clock.of(record, self.engine, self.queue, facts)
        reads = _tiles_among(record, [access.reads for access in accesses])
        writes = _tiles_among(record, [access.writes for access in accesses])
        read = [record.operands[i] for i in reads]
        plan = Plan(
            self._decoded(record, row),
            reads,
            writes,
            timing,
            size,
            activation_table(row, record.attributes, self.engine),
            tuple([i for i in reads if i != row.accumulator]),
            tuple([(i, record.operands[i] in read) for i in writes if self._is_in_psum(record, i)]),
        )
        if key is not None:
            memo[key] = plan
        return plan

    def work(self, record: InstructionRecord, row: Row) -> Work:
        """Return the work of a plan, shared likewise."""
        key = self._key(record, row)
        work = self._works.get(key)
        if work is None:
            work = self._decoded(record, row)
            if key is not None:
                self._works[key] = work
        return work

    def _key(self, record: InstructionRecord, row: Row) -> object:
        """Return what instructions have in common that share a plan; None if it shares none."""
        regions, spots = [], self.memory.spots
        key: list[object] = [row, record.attributes]
        for operand in record.operands:
            if type(operand) is PatternRecord:
                _, form, region = spots.get(id(operand)) or self.memory.spot(operand)
                regions.append(region)
                key.append(form)
            else:
                key.append(operand or repr(operand))  # 0.0 equals -0.0
        if len(set(regions)) != len(regions):
            aliases = self._aliases(record)
            if aliases is None:
                return None
            key.extend(aliases)
        if row.number_attributes:
            key.extend([repr(record.attributes[i]) for i in row.number_attributes])
        return tuple(key)

    def _aliases(self, record: InstructionRecord) -> Aliases | None:
        """Return which tiles are identical; None if two of them overlap otherwise."""
        patterns = [operand for operand in record.operands if type(operand) is PatternRecord]
        same = []
        for (i, first), (j, second) in combinations(enumerate(patterns), 2):
            if first == second:
                same.append((i, j))
            elif self.memory.may_overlap(first, second):
                return None
        return tuple(same)

    def _is_in_psum(self, record: InstructionRecord, number: int) -> bool:
        pattern: PatternRecord = record.operands[number]  # type: ignore[assignment]
        return self.executable.tensors[pattern.tensor].buffer is Buffer.PSUM

    def _decoded(self, record: InstructionRecord, row: Row) -> Work:
        """Bind the instruction to memory; its function in simulate/semantics makes the step."""
        memory, decoder = self.memory, self.decoder
        memory.scratch.begin()
        tiles: dict[PatternRecord, Tile] = {}
        numbered: list[tuple[int, Tile]] = []
        for number, operand in enumerate(record.operands):
            if isinstance(operand, PatternRecord) and operand not in tiles:
                tiles[operand] = tile = Tile(memory, operand, decoder.precise)
                numbered.append((number, tile))
        operands: dict[str, Value] = {
            name: tiles[value] if isinstance(value, PatternRecord) else value
            for name, value in zip(row.operand_index, record.operands, strict=False)
        }
        attributes = dict(zip(row.attribute_index, record.attributes, strict=True))
        remarks, scratch = self.state.remarks, memory.scratch
        lost.note(row, operands, remarks)
        facts = (row, decoder.target, self.engine, operands, attributes, self.state)
        decoded = Decoded(*facts, scratch, decoder.accumulate, {})
        step, rendezvous = _nothing, None
        if row.is_rendezvous:
            rendezvous = RENDEZVOUS[row.name](decoded)
        else:
            step = lost.watched(SEMANTICS[row.name](decoded), row, operands, attributes, remarks)
        selected, is_placed = decoded.selected, not memory.is_separate
        return Work(step, tuple(numbered), selected, rendezvous, is_placed)


def _nothing() -> None:
    """The step of a rendezvous."""


def _tiles_among(record: InstructionRecord, flags: list[bool]) -> tuple[int, ...]:
    pairs = enumerate(zip(record.operands, flags, strict=False))
    return tuple([i for i, (operand, flag) in pairs if flag and type(operand) is PatternRecord])
