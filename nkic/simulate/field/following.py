"""A program over the field, beside its ordinary run.

The run decides what is constant: masks, indices, registers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from zlib import crc32

import numpy as np

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.operands import Register
from nkic.machine.targets import PARTITIONS, Engine, Target
from nkic.simulate.beside import DST, SRC, Follower, Resolved, values_of
from nkic.simulate.field.elements import (
    INFINITE,
    NOWHERE,
    Doubles,
    Elements,
    choose,
    constant,
    variables,
)
from nkic.simulate.field.functions import ORDER
from nkic.simulate.field.rules import (
    ACCUMULATOR,
    Lanes,
    Operation,
    Results,
    Store,
    elements_of,
    rule_of,
    why_undecided,
)
from nkic.simulate.memory import Memory
from nkic.simulate.plans import Step


class Field(Follower):
    """The elements of all tensors of a rank.

    `names` gives each input the name under which both programs get the same numbers, `seed` draws
    them. `casts` has the instructions that round what depends on inputs, with the type;
    `wholly` lists places that make every result undecided.
    """

    def __init__(
        self,
        executable: Executable,
        memory: Memory,
        target: Target,
        names: Mapping[str, str],
        seed: int = 0,
    ) -> None:
        super().__init__(executable, memory, target)
        self.seed = seed
        self.store = self.stored()
        self.casts = set[tuple[str, int]]()
        self._reasons = {NOWHERE: "NaN"}
        self._names: dict[int, str] = {}
        self.wholly: set[int] = set()
        self._lanes: defaultdict[tuple[int, Engine], Lanes] = defaultdict(dict)
        drawn = {record.tensor: names[record.name] for record in executable.inputs}
        for tensor in (*executable.constants, *drawn):
            pattern = self._whole(tensor)
            if tensor in drawn and pattern.dtype.is_float:
                self.store.write(pattern, self.input(pattern, drawn[tensor]))
            elif pattern.dtype.kind != "packed":
                values = self._values(pattern)
                self.store.write(pattern, self.store.algebra.constant(values, _bits(pattern)))

    def stored(self) -> Store:
        return Store(self.executable)

    def input(self, pattern: PatternRecord, name: str) -> Elements:
        """Return the elements of an input."""
        state = np.random.default_rng([self.seed, crc32(name.encode())])
        return variables(state, self.store.shape(pattern))

    def _whole(self, tensor: int) -> PatternRecord:
        record = self.executable.tensors[tensor]
        return PatternRecord(tensor, record.dtype, 0, 0, 0, ((1, int(np.prod(record.shape))),))

    def _values(self, pattern: PatternRecord) -> Doubles:
        return values_of(self.memory, pattern).reshape(self.store.shape(pattern))

    def of_output(self, tensor: int) -> Elements:
        return elements_of(self.store.whole(tensor).reshape(-1), self.store.size(tensor))

    def knows_offsets(self, record: InstructionRecord) -> bool:
        return self._is_constant(record, offsets=True)

    def lose(self, record: InstructionRecord, engine: Engine) -> None:
        if record.row is not None and self._written(record, engine):
            self._reason(record)
            self._finish(record, None, self._written(record, engine), False)

    def _written(self, record: InstructionRecord, engine: Engine) -> dict[str, PatternRecord]:
        return self.executable.written(record, self.target, engine)

    def following(self, record: InstructionRecord, core: int, engine: Engine) -> Step:
        operation = Operation(record, self.memory, self.store, self._lanes[core, engine])
        is_dynamic = any(p.dynamic is not None for p in _patterns(record))
        are_constant = not is_dynamic and self._is_constant(record)
        rule = None if is_dynamic else rule_of(operation.row)
        self._names[record.place] = operation.row.name
        results = rule(operation) if rule is not None else None
        if not is_dynamic and any(self.store.window(p) is None for p in _patterns(record)):
            self._reasons[record.place] = f"{operation.row.name} takes bits as another type"
        elif results is None:
            self._reason(record)
        into_register = any(type(o) is Register for o in record.operands[:1])
        if results is None and into_register and not are_constant:
            self.wholly.add(record.place)
        effects = operation.row.effects(self.executable.facts(record, self.target, engine))
        if results is None and any(name.endswith(ACCUMULATOR) for name in effects.writes):
            lost = self.store.algebra.unknown((PARTITIONS, 1))
            operation.lanes[ACCUMULATOR] = lost.undecided(record.place)
        constant_results = are_constant and (results is not None or not effects.reads)
        written = self._written(record, engine)
        return lambda: self._finish(record, results, written, constant_results)

    def _reason(self, record: InstructionRecord) -> None:
        assert record.row is not None
        why = why_undecided(record.row) or "is not covered with these operands"
        self._reasons[record.place] = f"{record.row.name} {why}"

    def reason(self, place: int) -> str:
        """Return what an instruction does that the field cannot follow, or not in full."""
        lacking = (
            f"{self._names.get(place, '')} compares values, or takes a function with few axioms"
        )
        return self._reasons.get(place, lacking.strip())

    def comparison(self, place: int) -> str:
        return self._names.get(place, "")

    def _is_constant(self, record: InstructionRecord, offsets: bool = False) -> bool:
        """Return whether all that it reads is constant, or all offsets of its operands."""
        patterns = _patterns(record)
        if offsets:
            sources = [record.operands[p.dynamic.source] for p in patterns if p.dynamic is not None]
            patterns = [p for p in sources if type(p) is PatternRecord]
        reads = [self.store.read(p) for p in patterns if p.dynamic is None]
        return all(e is not None and not (e.varies | (e.origin > 0)).any() for e in reads)

    def _finish(
        self,
        record: InstructionRecord,
        results: Results | None,
        written: Mapping[str, PatternRecord],
        are_constant: bool,
    ) -> None:
        """Store results: constants as the run has them, others as the rule does."""
        for name, pattern in written.items():
            shape = self.store.shape(pattern)
            result = results.get(name) if results is not None else None
            is_lost = pattern.dtype.kind == "packed" or self.store.window(pattern) is None
            if is_lost or (result is None and not are_constant):
                lost = self.store.algebra.unknown(shape)
                self.store.write(pattern, lost.undecided(record.place))
                continue
            values = self._values(pattern)
            if result is None:
                known = self.store.algebra.constant(values, _bits(pattern))
                self.store.write(pattern, known)
                continue
            result = _shaped(result, shape)
            self.store.write(pattern, self._kept(record, result, values, pattern))

    def _kept(
        self, record: InstructionRecord, result: Elements, values: Doubles, pattern: PatternRecord
    ) -> Elements:
        """Return a result as its type keeps it; constants have the `values` of the run."""
        varies, dtype = result.varies, pattern.dtype
        known = ~varies & np.isfinite(result.value) & (np.abs(values) < INFINITE)
        values = np.where(known, values, 0.0)
        result = result._replace(value=np.where(known, values, result.value))
        if not dtype.is_float:
            whole = (result.residues <= 1).all(axis=0)
            order = ORDER.get(None)
            if order is not None and order.is_free:  # in which truth is another number
                whole = np.ones_like(whole)
            result = choose(known, constant(values), result)
            result = result.undecided(record.place, varies & ~whole)
            if (varies & ~whole).any():
                self._reasons.setdefault(record.place, "conversion to integers")
        elif varies.any() and _bits(pattern) < 24 and not _only_moves(record, pattern):
            self.casts.add((dtype.name, record.place))
        return result

    # ---- gather and scatter ----

    def moving(self, resolved: Resolved, engine: Engine) -> Step:
        dst, src = resolved.pattern(DST), resolved.pattern(SRC)
        taken = self.store.taken(resolved)
        is_kept = taken is not None and src.dtype.is_float == dst.dtype.is_float

        def after() -> None:
            self.store.grow(dst.tensor, self.store.size(src.tensor))
            if not is_kept or taken is None or not self.store.put(resolved, taken):
                self._reasons[resolved.record.place] = "a transfer into another type"
                self.wholly.add(resolved.record.place)

        return after


def _patterns(record: InstructionRecord) -> list[PatternRecord]:
    return [operand for operand in record.operands if type(operand) is PatternRecord]


def _bits(pattern: PatternRecord) -> int:
    return pattern.dtype.mantissa_bits + 1 if pattern.dtype.is_float else 24


def _only_moves(record: InstructionRecord, dst: PatternRecord) -> bool:
    moves = record.row is not None and record.row.moves
    return moves and all(p.dtype is dst.dtype or not p.dtype.is_float for p in _patterns(record))


def _shaped(result: Elements, shape: tuple[int, ...]) -> Elements:
    """Return the result in the shape of what is written, or spread over it."""
    if result.value.size == int(np.prod(shape)):
        return result.moved(lambda x: x.reshape(shape))
    return result.spread(shape)
