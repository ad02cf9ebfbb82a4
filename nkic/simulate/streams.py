"""Streams made ready to run: items with their steps, durations, waits and signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.operands import Access, Row, no_access
from nkic.machine.targets import Target
from nkic.machine.timing import Timing
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, PatternRecord, StreamRecord
from nkic.simulate.clock import Clock
from nkic.simulate.decode import Decoder, EngineState, Step
from nkic.simulate.shadow import Shadow

Check = Callable[[], bool]


@dataclass(slots=True)
class Item:
    """One item of a stream, ready to run.

    `checks` are the reads that must find written bytes, with their patterns; `marks` record
    what the item writes. `follows` means: it needs the result of the item before it, so the
    engine stalls until that is there.
    """

    record: InstructionRecord
    step: Step | None
    timing: Timing
    bytes: int
    waits: tuple[tuple[int, int], ...]
    signals: tuple[int, ...]
    follows: bool
    checks: tuple[tuple[Check, PatternRecord], ...] = ()
    marks: tuple[Step, ...] = ()


@dataclass(slots=True)
class Runner:
    """A stream at run time. `loops` are the open ones: (first item, end, record)."""

    index: int
    record: StreamRecord
    items: list[Item | LoopRecord]
    state: EngineState
    at: int = 0
    free: int = 0  # when the next item may be issued
    done: int = 0  # when the last item issued is complete
    busy: int = 0
    count: int = 0
    loops: list[tuple[int, int, LoopRecord]] = field(default_factory=list)

    @property
    def is_dma(self) -> bool:
        return self.record.engine is Engine.DMA

    def current(self) -> Item | None:
        """The next item to run, after opening and closing the loops before it."""
        while True:
            if self.loops and self.at == self.loops[-1][1]:
                self._next_iteration()
                continue
            if self.at >= len(self.items):
                return None
            item = self.items[self.at]
            if isinstance(item, Item):
                return item
            self._open(item)

    def _value(self, value: int | Register) -> int:
        return self.state.registers[value.number] if isinstance(value, Register) else value

    def _open(self, loop: LoopRecord) -> None:
        first = self.at + 1
        if loop.counter is not None:
            self.state.registers[loop.counter.number] = self._value(loop.start)
        if self._goes_on(loop):
            self.loops.append((first, first + loop.length, loop))
            self.at = first
        else:
            self.at = first + loop.length

    def _next_iteration(self) -> None:
        first, end, loop = self.loops[-1]
        if loop.counter is not None:
            self.state.registers[loop.counter.number] += loop.step
        if self._goes_on(loop):
            self.at = first
        else:
            self.loops.pop()
            self.at = end

    def _goes_on(self, loop: LoopRecord) -> bool:
        if loop.condition is not None:
            return self.state.registers[loop.condition.number] != 0
        if loop.counter is None or loop.length == 0:
            return False
        return self.state.registers[loop.counter.number] < self._value(loop.stop)


def prepare(
    executable: Executable, target: Target, decoder: Decoder, shadow: Shadow | None
) -> list[Runner]:
    """Every stream of the file, ready to run."""
    clock = Clock(executable, target)
    builder = _Builder(executable, target, decoder, shadow, clock)
    return [builder.runner(i, stream) for i, stream in enumerate(executable.streams)]


@dataclass
class _Builder:
    executable: Executable
    target: Target
    decoder: Decoder
    shadow: Shadow | None
    clock: Clock

    def runner(self, index: int, stream: StreamRecord) -> Runner:
        state = EngineState(self.executable.registers)
        items: list[Item | LoopRecord] = []
        written: frozenset[int] = frozenset()  # tensors that the item before writes
        for record in stream.items:
            if isinstance(record, LoopRecord):
                items.append(record)
                written = frozenset()
                continue
            item, written = self.item(record, written, stream.engine, state)
            items.append(item)
        return Runner(index, stream, items, state)

    def item(
        self,
        record: InstructionRecord,
        before: frozenset[int],
        engine: Engine,
        state: EngineState,
    ) -> tuple[Item, frozenset[int]]:
        """The item, and the tensors that it writes."""
        timing, size = self.clock.of(record, engine)
        if record.row is None:
            return Item(record, None, timing, 0, record.waits, record.signals, False), before
        step = self.decoder.step(record, engine, state)
        reads, writes = self.accesses(record, engine)
        follows = engine is not Engine.DMA and any(p.tensor in before for p in reads)
        item = Item(record, step, timing, size, record.waits, record.signals, follows)
        if self.shadow is not None:
            item.checks = tuple((self.shadow.reader(p), p) for p in reads)
            item.marks = tuple(self.shadow.writer(p) for p in writes)
        return item, frozenset(p.tensor for p in writes)

    def accesses(
        self, record: InstructionRecord, engine: Engine
    ) -> tuple[list[PatternRecord], list[PatternRecord]]:
        """The patterns that `record` reads and writes; offsets' sources are reads."""
        row = record.row
        if row is None:
            return [], []
        reads, writes = [], []
        own = len(row.operands)
        accesses = self._fixed_accesses(row) or self._accesses(row, record, engine)
        for access, value in zip(accesses, record.operands, strict=False):
            if isinstance(value, PatternRecord):
                if access.reads:
                    reads.append(value)
                if access.writes:
                    writes.append(value)
        reads += [v for v in record.operands[own:] if isinstance(v, PatternRecord)]
        return reads, writes

    def _fixed_accesses(self, row: Row) -> tuple[Access, ...]:
        """What every instance of `row` does to its operands; () if that varies."""
        return tuple(o.access for o in row.operands) if row.access is no_access else ()

    def _accesses(self, row: Row, record: InstructionRecord, engine: Engine) -> tuple[Access, ...]:
        facts = self.executable.facts(record, self.target, engine)
        return tuple(row.access_of(rule, facts) for rule in row.operands)
