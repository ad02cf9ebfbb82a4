"""Streams made ready to run: items with their steps, durations, waits and signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.operands import Row, no_access
from nkic.machine.targets import Target
from nkic.machine.timing import Timing
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, PatternRecord, StreamRecord
from nkic.simulate.clock import Clock
from nkic.simulate.decode import Decoder, EngineState, Registers, Step
from nkic.simulate.dynamic import Resolver, is_dynamic
from nkic.simulate.shadow import Shadow

Check = Callable[[], bool]


@dataclass(slots=True)
class Item:
    """One item of a stream, ready to run.

    `checks` are the reads that must find written bytes, with their patterns; `marks` record
    what the item writes. `follows` means: it needs the result of the item before it, so the
    engine stalls until that is there. `resolve`, where places are known at run time only, gives
    the items to run in its place.
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
    resolve: Callable[[], list[Item]] | None = None


class _Open(NamedTuple):
    """A loop that a stream is in: its first item, one past its last, and its upper bound."""

    first: int
    end: int
    record: LoopRecord
    stop: int


@dataclass(slots=True)
class Runner:
    """A stream at run time, with the loops that are open, outermost first.

    `look` is called at every iteration of a loop, some of which hold nothing that is run.
    """

    index: int
    record: StreamRecord
    items: list[Item | LoopRecord]
    state: EngineState
    core: int = field(init=False)
    is_dma: bool = field(init=False)
    look: Step = field(init=False)
    at: int = 0
    free: int = 0  # when the next item may be issued
    done: int = 0  # when the last item issued is complete
    busy: int = 0
    count: int = 0
    loops: list[_Open] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.core = self.record.core
        self.is_dma = self.record.engine is Engine.DMA
        self.look = _nothing

    def current(self) -> Item | None:
        """The next item to run, after opening and closing the loops before it."""
        while True:
            if self.loops and self.at == self.loops[-1].end:
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
        """Enters a loop; its bounds are those that hold now."""
        first = self.at + 1
        opened = _Open(first, first + loop.length, loop, self._value(loop.stop))
        if loop.counter is not None:
            self.state.registers.own[loop.counter.number] = self._value(loop.start)
        self.loops.append(opened)
        self._repeat_or_leave(opened)

    def _next_iteration(self) -> None:
        self.look()
        opened = self.loops[-1]
        if opened.record.counter is not None:
            self.state.registers.own[opened.record.counter.number] += opened.record.step
        self._repeat_or_leave(opened)

    def _repeat_or_leave(self, opened: _Open) -> None:
        if self._goes_on(opened):
            self.at = opened.first
            return
        self.loops.pop()
        self.at = opened.end

    def _goes_on(self, opened: _Open) -> bool:
        loop = opened.record
        if loop.length == 0:
            return False
        if loop.condition is not None:
            return self.state.registers[loop.condition.number] != 0
        return loop.counter is not None and self.state.registers[loop.counter.number] < opened.stop


def _nothing() -> None:
    """The step of an item that others run for."""


def prepare(
    executable: Executable, target: Target, decoder: Decoder, shadow: Shadow | None
) -> list[Runner]:
    """Every stream of the file, ready to run."""
    builder = _Builder(executable, target, decoder, shadow)
    return [builder.runner(i, stream) for i, stream in enumerate(executable.streams)]


class _Builder:
    def __init__(
        self, executable: Executable, target: Target, decoder: Decoder, shadow: Shadow | None
    ) -> None:
        self.executable = executable
        self.target = target
        self.decoder = decoder
        self.shadow = shadow
        self.clock = Clock(executable, target)
        self.registers = [[0] * executable.registers for _ in range(executable.cores)]
        self.roles: dict[Row, Roles] = {}
        self.resolver = Resolver(executable, decoder.memory)

    def runner(self, index: int, stream: StreamRecord) -> Runner:
        state = EngineState(Registers(self.registers[stream.core]))
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
        if is_dynamic(record):
            return self.dynamic_item(record, timing, size, engine, state), []
        step = self.decoder.step(record, engine, state)
        roles = self.roles.get(row) or self.roles_of(row, record, engine)
        operands = record.operands
        reads = [p for i in roles.reads if type(p := operands[i]) is PatternRecord]
        writes = [p for i in roles.writes if type(p := operands[i]) is PatternRecord]
        follows = engine is not Engine.DMA and _meet(before, reads)
        item = Item(record, step, timing, size, record.waits, record.signals, follows)
        if self.shadow is not None:
            item.checks = tuple([(self.shadow.reader(p), p) for p in reads])
            item.marks = tuple([self.shadow.writer(p) for p in writes])
        return item, writes

    def dynamic_item(
        self,
        record: InstructionRecord,
        timing: Timing,
        size: int,
        engine: Engine,
        state: EngineState,
    ) -> Item:
        """An item that is decoded anew each time it runs. It checks where its offsets are."""

        def resolve() -> list[Item]:
            found = self.resolver.concrete(record, state)
            return [self.item(fixed, [], engine, state)[0] for fixed in found]

        item = Item(record, _nothing, timing, size, record.waits, record.signals, True)
        item.resolve = resolve
        hidden = record.operands[len(record.row.operands) if record.row else 0 :]
        sources = [p for p in hidden if type(p) is PatternRecord]
        if self.shadow is not None:
            item.checks = tuple((self.shadow.reader(p), p) for p in sources)
        return item

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
