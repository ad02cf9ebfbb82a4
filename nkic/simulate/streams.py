"""Streams made ready to run: items with their steps, durations, waits and signals."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.operands import Row, no_access
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
    builder = _Builder(executable, target, decoder, shadow)
    with _without_collector():
        return [builder.runner(i, stream) for i, stream in enumerate(executable.streams)]


@contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing made at load is garbage, and the collector would look through all of it often."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Builder:
    def __init__(
        self, executable: Executable, target: Target, decoder: Decoder, shadow: Shadow | None
    ) -> None:
        self.executable = executable
        self.target = target
        self.decoder = decoder
        self.shadow = shadow
        self.clock = Clock(executable, target)
        self.roles: dict[Row, Roles] = {}

    def runner(self, index: int, stream: StreamRecord) -> Runner:
        state = EngineState(self.executable.registers)
        items: list[Item | LoopRecord] = []
        written: list[PatternRecord] = []  # by the item before
        for record in stream.items:
            if isinstance(record, LoopRecord):
                items.append(record)
                written = []
                continue
            item, written = self.item(record, written, stream.engine, state)
            items.append(item)
        return Runner(index, stream, items, state)

    def item(
        self,
        record: InstructionRecord,
        before: list[PatternRecord],
        engine: Engine,
        state: EngineState,
    ) -> tuple[Item, list[PatternRecord]]:
        """The item, and what it writes. `before` is what the item before it writes."""
        timing, size = self.clock.of(record, engine)
        row = record.row
        if row is None:
            return Item(record, None, timing, 0, record.waits, record.signals, False), before
        step = self.decoder.step(record, engine, state)
        roles = self.roles.get(row) or self.roles_of(row, record, engine)
        operands = record.operands
        reads = [p for i in roles.reads if type(p := operands[i]) is PatternRecord]
        writes = [p for i in roles.writes if type(p := operands[i]) is PatternRecord]
        if len(operands) > len(row.operands):  # where run-time offsets are
            reads += [p for p in operands[len(row.operands) :] if type(p) is PatternRecord]
        follows = engine is not Engine.DMA and _meet(before, reads)
        item = Item(record, step, timing, size, record.waits, record.signals, follows)
        if self.shadow is not None:
            item.checks = tuple([(self.shadow.reader(p), p) for p in reads])
            item.marks = tuple([self.shadow.writer(p) for p in writes])
        return item, writes

    def roles_of(self, row: Row, record: InstructionRecord, engine: Engine) -> Roles:
        """Which operands `record` reads and writes; remembered if all of its row do the same."""
        facts = self.executable.facts(record, self.target, engine)
        accesses = [row.access_of(rule, facts) for rule in row.operands]
        found = Roles(
            tuple(i for i, access in enumerate(accesses) if access.reads),
            tuple(i for i, access in enumerate(accesses) if access.writes),
        )
        if row.access is no_access:
            self.roles[row] = found
        return found


class Roles(NamedTuple):
    """Which operands an instruction reads, and which it writes, by number."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]


def _meet(writes: list[PatternRecord], reads: list[PatternRecord]) -> bool:
    return any(w.tensor == r.tensor for w in writes for r in reads)
