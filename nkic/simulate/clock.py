"""How long instructions take, from the cost formulas of the table. Times are picoseconds."""

from __future__ import annotations

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, timing
from nkic.neff.records import Executable, InstructionRecord, PatternRecord

Key = tuple[object, ...]


class Clock:
    """Durations by signature: equal shapes cost the same wherever they lie."""

    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable = executable
        self.target = target
        self.known: dict[Key, tuple[Timing, int]] = {}

    def of(self, record: InstructionRecord, engine: Engine, queue: int = 0) -> tuple[Timing, int]:
        """The timing of `record` on `engine`, or on that DMA queue, and the bytes that it moves by
        DMA.
        """
        if record.row is None:
            return Timing(0, 0), 0
        tensors = self.executable.tensors
        shapes = [
            (tensors[o.tensor].buffer, o.dtype, o.partitions, o.dims, o.dynamic and o.dynamic[0])
            if type(o) is PatternRecord
            else o
            for o in record.operands
        ]
        key = (record.row, engine, queue, record.attributes, *shapes)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._compute(record.row, record, engine, queue)
        return found

    def _compute(
        self, row: Row, record: InstructionRecord, engine: Engine, queue: int
    ) -> tuple[Timing, int]:
        facts = self.executable.facts(record, self.target, engine)
        moved = _moved(row, facts) if engine is Engine.DMA else 0
        return timing(row, facts, engine, queue), moved


def _moved(row: Row, facts: Facts) -> int:
    """Bytes that a transfer writes."""
    written = [o.name for o in row.operands if row.access_of(o, facts).writes]
    tiles = [t for name in written if (t := facts.maybe(name)) is not None]
    return sum(t.elements * t.dtype.size for t in tiles)
