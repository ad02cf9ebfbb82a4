"""The propagation of bounds through the instructions of one rank."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.targets import Target
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.bounds.algebra import Doubles, stored
from nkic.simulate.bounds.operation import Errors, Lanes, Operation, values_of
from nkic.simulate.bounds.rules import RULES
from nkic.simulate.bounds.run_time import Transfer, resolve
from nkic.simulate.bounds.store import Store
from nkic.simulate.dynamic import Dynamic
from nkic.simulate.storage.memory import Memory


class Bounds:
    """The bounds of all tensors of a rank, updated instruction by instruction.

    `uncovered` counts the instructions that left something unbounded, by row and place.
    """

    def __init__(self, executable: Executable, memory: Memory, target: Target) -> None:
        self.executable = executable
        self.memory = memory
        self.target = target
        self.store = Store(executable)
        self.uncovered: Counter[tuple[str, int]] = Counter()
        self._registers_inexact = False  # whether rounding may have changed some register
        self._lanes: defaultdict[tuple[int, Engine], Lanes] = defaultdict(dict)

    def before(
        self, record: InstructionRecord, core: int, engine: Engine, dynamic: Dynamic | None = None
    ) -> Callable[[], None]:
        """Prepare for an instruction before it runs, and return a function to call after it.

        `dynamic` has the run-time addresses.
        """
        self._check_registers(record)
        if dynamic is not None and self._offsets_are_exact(record):
            resolved = resolve(record, dynamic)
            if resolved.is_transfer:
                return self._moving(record, engine, Transfer(resolved, self.memory, self.store))
            if not resolved.rows and resolved.inside.all():
                record = resolved.record
            elif not resolved.inside.any():
                return lambda: None
        return self._following(record, core, engine)

    def _following(
        self, record: InstructionRecord, core: int, engine: Engine
    ) -> Callable[[], None]:
        operation = Operation(record, self.memory, self.store, self._lanes[core, engine])
        written = self.executable.written(record, self.target, engine)
        errors = None if self._has_dynamic(record) else self._result_errors(operation)
        if errors is None:
            return lambda: self._lose(record, operation, written)
        moves = record.row is not None and record.row.moves

        def after() -> None:
            for name, pattern in written.items():
                error = np.broadcast_to(errors.get(name, np.inf), np.shape(errors.get(name, 0.0)))
                self._keep(pattern, error, moves and self._keeps_bits(operation, pattern))

        return after

    def _moving(
        self, record: InstructionRecord, engine: Engine, transfer: Transfer
    ) -> Callable[[], None]:
        def after() -> None:
            if not transfer.finish():
                self.lose(record, engine)

        return after

    def lose(self, record: InstructionRecord, engine: Engine) -> None:
        """Make what an instruction without propagation has written unbounded."""
        operation = Operation(record, self.memory, self.store, {})
        self._lose(record, operation, self.executable.written(record, self.target, engine))

    def of_output(self, tensor: int) -> Doubles:
        """Return the bounds of a tensor in HBM, in its shape."""
        return self.store.whole(tensor).reshape(self.executable.tensors[tensor].shape).copy()

    def _result_errors(self, operation: Operation) -> Errors | None:
        """Return the bounds by the row's rule; integer results of exact integers are exact."""
        patterns = [p for p in operation.operands.values() if type(p) is PatternRecord]
        if all(p.dtype.is_integer for p in patterns) and self._are_exact(patterns):
            return dict.fromkeys(operation.operands, np.zeros(()))
        rule = RULES.get(operation.row.name)
        return rule(operation) if rule is not None else None

    def _keep(self, pattern: PatternRecord, error: Doubles, bits: bool) -> None:
        values = values_of(self.memory, pattern)
        whole = np.array(np.broadcast_to(_shaped(error, values.shape), values.shape), np.float64)
        if not bits:
            whole = stored(values, whole, pattern.dtype)
            whole[np.isinf(values)] = np.inf  # an overflow
        whole[np.isnan(whole)] = np.inf
        self.store.write(pattern, whole)

    def _keeps_bits(self, operation: Operation, dst: PatternRecord) -> bool:
        sources = [
            p for n, p in operation.operands.items() if type(p) is PatternRecord and p is not dst
        ]
        return all(p.dtype is dst.dtype or p.dtype.is_integer for p in sources)

    def _lose(
        self, record: InstructionRecord, operation: Operation, written: dict[str, PatternRecord]
    ) -> None:
        for pattern in written.values():
            self.store.write(pattern, np.full(self.store.shape(pattern), np.inf))
        if written:
            self.uncovered[operation.row.name, record.place] += 1

    def _are_exact(self, patterns: list[PatternRecord]) -> bool:
        return not any(self.store.whole(p.tensor).any() for p in patterns)

    def _check_registers(self, record: InstructionRecord) -> None:
        """Check whether rounding may have changed the register that the instruction writes."""
        into = any(type(operand) is Register for operand in record.operands[:1])
        tiles = [p for p in record.operands if type(p) is PatternRecord]
        if into and not self._are_exact(tiles):
            self._registers_inexact = True

    def _offsets_are_exact(self, record: InstructionRecord) -> bool:
        """Return whether its offsets are exact."""
        dynamic = [p.dynamic for p in record.operands if type(p) is PatternRecord and p.dynamic]
        sources = [record.operands[offset.source] for offset in dynamic]
        tiles = [p for p in sources if type(p) is PatternRecord]
        if len(tiles) < len(sources) and self._registers_inexact:
            return False
        return not any(self.store.read(p).any() for p in tiles)

    def _has_dynamic(self, record: InstructionRecord) -> bool:
        """Return whether some address is not resolved."""
        return any(type(p) is PatternRecord and p.dynamic is not None for p in record.operands)


def _shaped(error: Doubles, shape: tuple[int, ...]) -> Doubles:
    """Return the errors in the shape of what is written, or one for all."""
    return error.reshape(shape) if error.size == int(np.prod(shape)) else error
