"""What the instructions of one rank make of the bounds of their operands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.bounds.algebra import stored
from nkic.simulate.bounds.rules import RULES
from nkic.simulate.bounds.seen import Errors, Lanes, Seen, values_of
from nkic.simulate.bounds.store import Store
from nkic.simulate.memory import Memory

Doubles = NDArray[np.float64]
_NOWHERE: Lanes = {}


class Bounds:
    """The bounds of all tensors of a rank, kept up to date instruction by instruction.

    `uncovered` counts the instructions that left something unbounded, by row and place.
    """

    def __init__(self, executable: Executable, memory: Memory, target: Target) -> None:
        self.executable = executable
        self.memory = memory
        self.target = target
        self.store = Store(executable)
        self.uncovered: Counter[tuple[str, int]] = Counter()
        self._lanes: defaultdict[tuple[int, Engine], Lanes] = defaultdict(dict)

    def before(self, record: InstructionRecord, core: int, engine: Engine) -> Callable[[], None]:
        """To be called before an instruction runs; what it gives, after that."""
        seen = Seen(record, self.memory, self.store, self._lanes[core, engine])
        written = self._written(record, engine)
        found = None if self._is_uncertain(record) else self._found(seen)
        if found is None:
            return lambda: self._lose(record, seen, written)
        moves = record.row is not None and record.row.moves

        def after() -> None:
            for name, pattern in written.items():
                error = np.broadcast_to(found.get(name, np.inf), np.shape(found.get(name, 0.0)))
                self._keep(pattern, error, moves and self._keeps_bits(seen, pattern))

        return after

    def lose(self, record: InstructionRecord, engine: Engine) -> None:
        """An instruction that is not followed has run: what it wrote is unbounded."""
        seen = Seen(record, self.memory, self.store, _NOWHERE)
        self._lose(record, seen, self._written(record, engine))

    def of_output(self, tensor: int) -> Doubles:
        """The bounds of a tensor in HBM, in its shape."""
        return self.store.whole(tensor).reshape(self.executable.tensors[tensor].shape).copy()

    def _found(self, seen: Seen) -> Errors | None:
        """What the row's rule says; whole numbers that are computed from such are exact."""
        patterns = [p for p in seen.operands.values() if type(p) is PatternRecord]
        if all(p.dtype.is_integer for p in patterns) and self._are_exact(patterns):
            return dict.fromkeys(seen.operands, np.zeros(()))
        rule = RULES.get(seen.row.name)
        return rule(seen) if rule is not None else None

    def _keep(self, pattern: PatternRecord, error: Doubles, bits: bool) -> None:
        values = values_of(self.memory, pattern)
        whole = np.array(np.broadcast_to(_shaped(error, values.shape), values.shape), np.float64)
        if not bits:
            whole = stored(values, whole, pattern.dtype)
            whole[np.isinf(values)] = np.inf  # an overflow
        whole[np.isnan(whole)] = np.inf
        self.store.write(pattern, whole)

    def _keeps_bits(self, seen: Seen, dst: PatternRecord) -> bool:
        sources = [p for n, p in seen.operands.items() if type(p) is PatternRecord and p is not dst]
        return all(p.dtype is dst.dtype or p.dtype.is_integer for p in sources)

    def _lose(
        self, record: InstructionRecord, seen: Seen, written: dict[str, PatternRecord]
    ) -> None:
        for pattern in written.values():
            self.store.whole(pattern.tensor)
            self._spoil(pattern)
        if written:
            self.uncovered[seen.row.name, record.place] += 1

    def _spoil(self, pattern: PatternRecord) -> None:
        if pattern.dynamic is not None:
            self.store.whole(pattern.tensor)[...] = np.inf
            return
        self.store.write(pattern, np.full(self.store.shape(pattern), np.inf))

    def _are_exact(self, patterns: list[PatternRecord]) -> bool:
        return not any(self.store.whole(p.tensor).any() for p in patterns)

    def _is_uncertain(self, record: InstructionRecord) -> bool:
        """Some place is known at run time only."""
        return any(type(p) is PatternRecord and p.dynamic is not None for p in record.operands)

    def _written(self, record: InstructionRecord, engine: Engine) -> dict[str, PatternRecord]:
        row = record.row
        if row is None:
            return {}
        facts = self.executable.facts(record, self.target, engine)
        return {
            rule.name: operand
            for rule, operand in zip(row.operands, record.operands, strict=False)
            if type(operand) is PatternRecord and row.access_of(rule, facts).writes
        }


def _shaped(error: Doubles, shape: tuple[int, ...]) -> Doubles:
    """In the shape of what is written: the same elements, or one for all."""
    return error.reshape(shape) if error.size == int(np.prod(shape)) else error
