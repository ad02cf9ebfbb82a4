"""Instructions that differ in their addresses alone share a plan: their step, what it takes and
what it touches. What is left for each of them is to make its windows onto memory.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from numpy.typing import NDArray

from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, activation_table
from nkic.neff.records import Executable, InstructionRecord, OperandRecord, PatternRecord
from nkic.simulate.clock import Clock
from nkic.simulate.decode import Decoder, EngineState, Meeting, Step
from nkic.simulate.tile import Tile

Window = NDArray[Any]
Aliases = tuple[tuple[int, int], ...]


class Plan:
    """A step, and the tiles that it acts on with the number of an operand that each is.

    `reads` and `writes` are the numbers of the patterns that are read and written. `size` is
    the bytes that a transfer moves. Where all cores run it together, `meeting` stands for the step.
    `table` is the one of activation functions that it needs.
    """

    __slots__ = ("meeting", "reads", "size", "step", "table", "tiles", "timing", "writes")

    def __init__(
        self,
        step: Step,
        tiles: tuple[tuple[int, Tile], ...],
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        timing: Timing,
        size: int,
        meeting: Meeting | None = None,
        table: str = "",
    ) -> None:
        self.step = step
        self.meeting = meeting
        self.table = table
        self.tiles = tiles
        self.reads = reads
        self.writes = writes
        self.timing = timing
        self.size = size

    def windows(self, operands: tuple[OperandRecord, ...]) -> tuple[tuple[Tile, Window], ...]:
        """The tiles, and the memory to lay them over."""
        return tuple(
            [
                (tile, tile.memory.window(operands[i], tile.form))  # type: ignore[arg-type]
                for i, tile in self.tiles
            ]
        )


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
    ) -> None:
        self.executable = executable
        self.target = target
        self.decoder = decoder
        self.memory = decoder.memory
        self.clock = clock
        self.engine = engine
        self.state = state
        self.known: dict[object, Plan] = {}

    def plan(self, record: InstructionRecord, row: Row) -> Plan:
        """The plan of an instruction with fixed patterns."""
        patterns = []
        key: list[object] = [row, record.attributes]
        for operand in record.operands:
            if type(operand) is PatternRecord:
                patterns.append(operand)
                key.append(self.memory.form(operand))
            else:
                key.append(operand or repr(operand))  # 0.0 equals -0.0
        aliases = self._aliases(patterns)
        if aliases is None:
            return self._made(record, row)
        whole = (*key, aliases, *(repr(record.attributes[i]) for i in row.number_attributes))
        found = self.known.get(whole)
        if found is None:
            found = self.known[whole] = self._made(record, row)
        return found

    def _aliases(self, patterns: list[PatternRecord]) -> Aliases | None:
        """Which tiles are the same one; None if two of them share bytes in another way."""
        same = []
        for (i, one), (j, other) in combinations(enumerate(patterns), 2):
            if one == other:
                same.append((i, j))
            elif self.memory.meet(one, other):
                return None
        return tuple(same)

    def _made(self, record: InstructionRecord, row: Row) -> Plan:
        step, met = _nothing, None
        if row.meets:
            met, tiles = self.decoder.meeting(record, self.engine, self.state)
        else:
            step, tiles = self.decoder.step(record, self.engine, self.state)
        facts = self.executable.facts(record, self.target, self.engine)
        accesses = [row.access_of(rule, facts) for rule in row.operands]
        timing, size = self.clock.of(record, self.engine)
        return Plan(
            step,
            tuple([(record.operands.index(pattern), tile) for pattern, tile in tiles.items()]),
            _tiles_among(record, [access.reads for access in accesses]),
            _tiles_among(record, [access.writes for access in accesses]),
            timing,
            size,
            met,
            activation_table(row, record.attributes, self.engine),
        )


def _nothing() -> None:
    """The step of what all cores run together."""


def _tiles_among(record: InstructionRecord, wanted: list[bool]) -> tuple[int, ...]:
    pairs = enumerate(zip(record.operands, wanted, strict=False))
    return tuple([i for i, (o, yes) in pairs if yes and type(o) is PatternRecord])
