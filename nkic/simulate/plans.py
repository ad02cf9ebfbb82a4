"""Plans, shared by instructions that differ in their addresses alone.

A plan holds the step, its timing and its accesses; each instruction only adds its windows onto
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, activation_table
from nkic.neff.records import Executable, InstructionRecord, OperandRecord, PatternRecord
from nkic.pace.clock import Clock
from nkic.simulate.decode import Decoder, EngineState, Rendezvous, Step
from nkic.simulate.tile import Tile

Window = NDArray[Any]
Aliases = tuple[tuple[int, int], ...]
Shared = TypeVar("Shared")


class Work(NamedTuple):
    """A step, and the tiles that it acts on, each with the index of its operand.

    If all cores run the instruction together, `rendezvous` takes the place of the step.
    `is_placed` tells that the memory of tiles is known before the run.
    """

    step: Step
    tiles: tuple[tuple[int, Tile], ...]
    rendezvous: Rendezvous | None = None
    is_placed: bool = False

    def windows(self, operands: tuple[OperandRecord, ...]) -> tuple[tuple[Tile, Window], ...]:
        """Return the tiles with the memory that they address."""
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
    """Makes the plans of one stream."""

    def __init__(
        self,
        executable: Executable,
        target: Target,
        decoder: Decoder,
        clock: Clock,
        engine: Engine,
        state: EngineState,
        queue: int = 0,
        copies: dict[object, Plan] | None = None,
    ) -> None:
        """`copies` holds the plans of plain copies, and may be shared by planners of queues that
        the same engine triggers: such a step keeps no state of its stream.
        """
        self.executable = executable
        self.target = target
        self.decoder = decoder
        self.memory = decoder.memory
        self.clock = clock
        self.engine = engine
        self.queue = queue
        self.state = state
        self._plans: dict[object, Plan] = {}
        self._copies = self._plans if copies is None else copies
        self._works: dict[object, Work] = {}

    def plan(self, record: InstructionRecord, row: Row) -> Plan:
        """Return the plan of an instruction with fixed patterns."""
        memo = self._copies if row.copies else self._plans
        return self._shared(memo, record, row, self._planned)

    def work(self, record: InstructionRecord, row: Row) -> Work:
        """Return the work of an instruction with fixed patterns."""
        return self._shared(self._works, record, row, self._decoded)

    def _shared(
        self,
        memo: dict[object, Shared],
        record: InstructionRecord,
        row: Row,
        make: Callable[[InstructionRecord, Row], Shared],
    ) -> Shared:
        """Return the memoised result for an instruction that differs in its addresses alone."""
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
                return make(record, row)
            key.extend(aliases)
        if row.number_attributes:
            key.extend([repr(record.attributes[i]) for i in row.number_attributes])
        whole_key = tuple(key)
        cached = memo.get(whole_key)
        if cached is None:
            cached = memo[whole_key] = make(record, row)
        return cached

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

    def _planned(self, record: InstructionRecord, row: Row) -> Plan:
        facts = self.executable.facts(record, self.target, self.engine)
        accesses = [row.access_of(rule, facts) for rule in row.operands]
        timing, size = self.clock.of(record, self.engine, self.queue)
        reads = _tiles_among(record, [access.reads for access in accesses])
        writes = _tiles_among(record, [access.writes for access in accesses])
        read = [record.operands[i] for i in reads]
        return Plan(
            self._decoded(record, row),
            reads,
            writes,
            timing,
            size,
            activation_table(row, record.attributes, self.engine),
            tuple([i for i in reads if i != row.accumulator]),
            tuple([(i, record.operands[i] in read) for i in writes if self._is_in_psum(record, i)]),
        )

    def _is_in_psum(self, record: InstructionRecord, number: int) -> bool:
        pattern: PatternRecord = record.operands[number]  # type: ignore[assignment]
        return self.executable.tensors[pattern.tensor].buffer is Buffer.PSUM

    def _decoded(self, record: InstructionRecord, row: Row) -> Work:
        step, rendezvous = _nothing, None
        if row.is_rendezvous:
            rendezvous, tiles = self.decoder.rendezvous(record, self.engine, self.state)
        else:
            step, tiles = self.decoder.step(record, self.engine, self.state)
        numbers = [(record.operands.index(pattern), tile) for pattern, tile in tiles.items()]
        return Work(step, tuple(numbers), rendezvous, not self.memory.is_separate)


def _nothing() -> None:
    """The step of a rendezvous."""


def _tiles_among(record: InstructionRecord, flags: list[bool]) -> tuple[int, ...]:
    pairs = enumerate(zip(record.operands, flags, strict=False))
    return tuple([i for i, (operand, flag) in pairs if flag and type(operand) is PatternRecord])
