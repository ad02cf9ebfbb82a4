"""Durations of instructions, from the cost formulas of the table. Times are in picoseconds."""

from __future__ import annotations

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import Row
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, timing
from nkic.neff.records import Executable, InstructionRecord, PatternRecord

Key = tuple[object, ...]


class Clock:
    """Durations memoised by signature: equal shapes cost the same at any address."""

    def __init__(self, executable: Executable, target: Target) -> None:
        self.executable = executable
        self.target = target
        self.timings: dict[Key, tuple[Timing, int]] = {}
        self.accesses: dict[Key, tuple[list[int], list[int]]] = {}

    def of(
        self, record: InstructionRecord, engine: Engine, queue: int = 0, facts: Facts | None = None
    ) -> tuple[Timing, int]:
        """Return the timing of `record` on an engine or DMA queue, and the bytes moved by DMA.

        `facts` are its facts if the caller has made them.
        """
        if record.row is None:
            return Timing(0, 0), 0
        key = self.signature(record, engine, queue)
        cached = self.timings.get(key)
        if cached is None:
            facts = facts or self.executable.facts(record, self.target, engine)
            cached = self.timings[key] = _computed(record.row, facts, engine, queue)
        return cached

    def signature(self, record: InstructionRecord, engine: Engine, queue: int) -> Key:
        """Return what the timing of `record` depends on."""
        tensors = self.executable.tensors
        shapes = [
            o.cost_key(tensors[o.tensor].buffer) if type(o) is PatternRecord else o
            for o in record.operands
        ]
        return (record.row, engine, queue, record.attributes, *shapes)

    def touched(self, record: InstructionRecord, engine: Engine) -> tuple[set[int], set[int]]:
        """Return the tensors that `record` reads and those that it writes.

        A tensor to which the engine accumulates does not count as read: it need not be waited for.
        """
        row = record.row
        if row is None:
            return set(), set()
        key = self.signature(record, engine, -1)
        cached = self.accesses.get(key)
        if cached is None:
            facts = self.executable.facts(record, self.target, engine)
            modes = [row.access_of(operand, facts) for operand in row.operands]
            reads = [i for i, m in enumerate(modes) if m.reads and i != row.accumulator]
            cached = self.accesses[key] = (reads, [i for i, m in enumerate(modes) if m.writes])
        return _tensors(record, cached[0]), _tensors(record, cached[1])


def _computed(row: Row, facts: Facts, engine: Engine, queue: int) -> tuple[Timing, int]:
    moved = _moved(row, facts) if engine is Engine.DMA else 0
    return timing(row, facts, engine, queue), moved


def _tensors(record: InstructionRecord, indices: list[int]) -> set[int]:
    """Return the tensors of the operands at these indices."""
    selected = [record.operands[i] for i in indices if i < len(record.operands)]
    return {operand.tensor for operand in selected if type(operand) is PatternRecord}


def _moved(row: Row, facts: Facts) -> int:
    """Return the number of bytes that a transfer writes."""
    written = [o.name for o in row.operands if row.access_of(o, facts).writes]
    tiles = [t for name in written if (t := facts.maybe(name)) is not None]
    return sum(t.elements * t.dtype.size for t in tiles)
