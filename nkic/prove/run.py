"""Abstract execution of all cores' streams, with semaphores but without values and times.

Each item gets a vector clock: for each stream of its core, the number of items that are certainly
complete when the item starts. The rules, which the runner follows:
- a stream starts its items in order, and they complete in order;
- an item of a compute engine sees all earlier items complete; a transfer does not;
- an item that waits for a signal learns the clock of the signalling item, plus that item and all
  earlier items in its stream.

Without loops, the clock of a signalling item is not merged until an access needs it: mostly an item
waits for the very items that it must follow. Until then a clock has what its stream was told.

Device loops are run for two iterations, which shows the effect of one on the next. A loop may also
run zero times: after it, the clock keeps nothing that was learned only inside it, other than the
completion of the loop's own items.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast

from nkic.machine.operands import Row
from nkic.prove.model import Item, Line, Round

Clock = list[int]  # by stream of the core; immutable once shared
ITERATIONS = 2
DECISION = -2  # the key of a stream's decision whether a loop continues


# The start of an item: its stream, its position (counted from 1), its vector clock, and the
# instruction's number. A plain tuple, since every instruction has one.
Start = tuple[int, int, Clock, int]


class Decision(NamedTuple):
    """A stream reads registers to decide about a loop, just before the item at that position."""

    start: Start
    registers: tuple[int, ...]


Waits = tuple[tuple[int, int], ...]  # semaphores and counts
Event = tuple[Literal["enter", "turn", "leave"], Round, int]
EdgeKey = tuple[int, int, int]  # a loop's number, the index of its execution, the iteration


class Runner:
    """The execution state of one stream."""

    def __init__(self, core: Core, index: int, line: Line) -> None:
        self.core = core
        self.index = index
        self.line = line
        self.clock: Clock = [0] * len(core.lines)
        self.position = 0
        self.has_loops = _has_loops(line)
        self.steps = _unrolled(line.items) if self.has_loops else iter(line.items)
        self.entries: list[tuple[Clock, int]] = []  # of the open loops
        self.next: Item | None = None
        self.advance()

    def advance(self) -> None:
        """Advance to the next item, deciding about loops on the way."""
        if not self.has_loops:
            self.next = cast("Item | None", next(self.steps, None))
            return
        for step in self.steps:
            if type(step) is Item:
                self.next = step
                return
            self.pass_edge(*cast(Event, step))
        self.next = None

    def pass_edge(self, edge: str, loop: Round, encoded: int) -> None:
        """Enter, continue or leave a loop; `encoded` holds the execution and the iteration."""
        core, execution = self.core, encoded // (ITERATIONS + 1)
        iteration = encoded % (ITERATIONS + 1)
        edge_key = (loop.loop, execution, iteration)
        if edge == "enter":
            core.entered[loop.loop, execution][self.index] = self.position
            self.entries.append((self.clock, self.position))
        registers = (*(loop.bounds if edge == "enter" else ()), loop.condition)
        registers = tuple(r for r in registers if r >= 0)
        if registers:
            start = (self.index, self.position + 1, self.clock, DECISION)
            core.decisions[edge_key].append(Decision(start, registers))
            core.sequence.append(core.decisions[edge_key][-1])
        core.compare(edge_key, self.index)
        if edge == "leave":
            self.clock = self.after(core.entered[loop.loop, execution], *self.entries.pop())

    def after(self, entered: dict[int, int], before: Clock, position: int) -> Clock:
        """Return the clock after a loop that may have run zero times."""
        if self.clock is before:
            return before
        return [
            current if stream in entered and earlier >= entered[stream] else min(current, earlier)
            for stream, (current, earlier) in enumerate(zip(self.clock, before, strict=True))
        ]


class Core:
    """The streams of one core, their semaphores, and the results of the run.

    `starts` has one table per execution of an instruction, each from its number to its start;
    `decisions` lists the decisions about loops, and `sequence` both in execution order.
    `unbalanced` maps semaphores to a loop that changes their count.
    """

    def __init__(self, number: int, lines: Sequence[Line]) -> None:
        self.number = number
        self.lines = lines
        self.is_straight = not any(map(_has_loops, lines))
        # Of each signal taken, until `complete_clocks`: the clock with it, the clock before, and
        # the signalling item.
        self.clocks: list[Clock] = []
        self.formers: list[Clock] = []
        self.sources: list[Start] = []
        self.tokens: dict[int, deque[Start]] = defaultdict(deque)
        self.parked: dict[int, Runner] = {}
        self.starts: list[dict[int, Start]] = [{}]
        self.decisions: dict[EdgeKey, list[Decision]] = defaultdict(list)
        self.sequence: list[Start | Decision] = []
        self.entered: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self.unbalanced: dict[int, int] = {}  # semaphore to loop
        self.sent: dict[int, int] = defaultdict(int)
        self.marks: dict[EdgeKey, dict[int, int]] = defaultdict(dict)
        self.offsets: dict[tuple[int, int, int], int] = {}  # by loop, execution and semaphore
        self.users = [_semaphores(line.items) for line in lines]
        self.runners = [Runner(self, index, line) for index, line in enumerate(lines)]

    def take(self, clock: Clock, waits: Waits) -> Clock:
        """Return the clock of a stream after it has taken the signals `waits`."""
        former, clock, is_straight = clock, clock.copy(), self.is_straight
        for semaphore, count in waits:
            queue = self.tokens[semaphore]
            for _ in range(count):
                source = queue.popleft()
                line, position, _, _ = source
                if clock[line] < position:
                    clock[line] = position
                if is_straight:
                    self.clocks.append(clock)
                    self.formers.append(former)
                    self.sources.append(source)
                else:
                    _merge(clock, source[2])
        return clock

    def complete_clocks(self) -> None:
        """Add to all clocks, in place, what the signalling items knew."""
        for clock, former, source in zip(self.clocks, self.formers, self.sources, strict=True):
            _merge(clock, former)
            _merge(clock, source[2])
        self.clocks, self.formers, self.sources = [], [], []

    def forget_items(self) -> None:
        """Free the items of the streams after the run, to make room for the ledger."""
        self.runners.clear()  # a reference cycle of large objects, and the collector is off
        self.lines = [line._replace(items=()) for line in self.lines]

    def shared(self) -> Iterator[tuple[int, Line, Line]]:
        """Yield semaphores that two streams signal, or that two streams wait for."""
        for side in (0, 1):
            owners: dict[int, Line] = {}
            for line, users in zip(self.lines, self.users, strict=True):
                for semaphore in sorted(users[EVERYWHERE][side]):
                    other = owners.setdefault(semaphore, line)
                    if other is not line:
                        yield semaphore, other, line

    def compare(self, edge_key: EdgeKey, stream: int) -> None:
        """Check that each iteration of a loop takes as many signals as it sends.

        At every edge of an iteration, the number of signals not yet taken must be the same.
        """
        marks, (loop, execution, _) = self.marks[edge_key], edge_key
        signals, waits = self.users[stream][loop]
        counts = [(semaphore, self.sent[semaphore]) for semaphore in signals]
        # minus the signals taken
        counts += [(s, len(self.tokens[s]) - self.sent[s]) for s in waits]
        for semaphore, count in counts:
            if semaphore not in marks:
                marks[semaphore] = count
                continue
            untaken = marks[semaphore] + count
            if self.offsets.setdefault((loop, execution, semaphore), untaken) != untaken:
                self.unbalanced.setdefault(semaphore, loop)


class AbstractRun:
    """Runs the streams of all cores to their end, or until they deadlock."""

    def __init__(self, cores: Sequence[Sequence[Line]]) -> None:
        self.cores = [Core(number, lines) for number, lines in enumerate(cores)]
        self.arrived: dict[tuple[object, int], dict[int, Runner]] = defaultdict(dict)
        self.mismatches: list[tuple[Row, Row]] = []  # differing rows at one rendezvous

    def run(self) -> list[Runner]:
        """Run, and return the deadlocked streams."""
        ready = [runner for core in self.cores for runner in core.runners]
        ready.reverse()
        while ready:
            self.advance(ready.pop(), ready)
        runners = [runner for core in self.cores for runner in core.runners]
        return [runner for runner in runners if runner.next is not None]

    def advance(self, runner: Runner, ready: list[Runner]) -> None:
        """Run a stream until it has to wait; park it there."""
        tokens, parked = runner.core.tokens, runner.core.parked
        while (item := runner.next) is not None:
            _, waits, _, rendezvous_row = item
            for semaphore, count in waits:
                if len(tokens[semaphore]) < count:
                    parked[semaphore] = runner
                    return
            if rendezvous_row is None:
                _step(runner, item, ready)
            elif not self.meet(runner, rendezvous_row, ready):
                return

    def meet(self, runner: Runner, row: Row, ready: list[Runner]) -> bool:
        """Enter a rendezvous, and return whether every core has reached it."""
        arrived = self.arrived[runner.line.engine, runner.line.queue]
        arrived[runner.core.number] = runner
        if len(arrived) < len(self.cores):
            return False
        parties = list(arrived.values())
        arrived.clear()
        for party in parties:
            item = party.next
            if item is not None:
                if item.rendezvous_row is not None and item.rendezvous_row is not row:
                    self.mismatches.append((row, item.rendezvous_row))
                _step(party, item, ready)
        ready += [party for party in parties if party is not runner]
        return True


def _step(runner: Runner, item: Item, ready: list[Runner]) -> None:
    """Run one item: consume its waits, record its start, and send its signals."""
    core = runner.core
    key, waits, signals, _ = item
    if waits:
        runner.clock = core.take(runner.clock, waits)
    position = runner.position = runner.position + 1
    start = (runner.index, position, runner.clock, key)
    if key >= 0:
        first = core.starts[0]
        if key not in first:
            first[key] = start
        else:
            # inside a loop: in the first table without the instruction, or in a new one
            table = next((table for table in core.starts if key not in table), None)
            if table is None:
                core.starts.append(table := {})
            table[key] = start
        core.sequence.append(start)
    for semaphore in signals:
        core.tokens[semaphore].append(start)
        if semaphore in core.parked:
            ready.append(core.parked.pop(semaphore))
    if core.is_straight:
        runner.next = cast("Item | None", next(runner.steps, None))
        return
    for semaphore in signals:
        core.sent[semaphore] += 1
    runner.advance()


def _merge(clock: Clock, other: Clock) -> None:
    """Add what `other` knows to `clock`."""
    clock[:] = [a if a > b else b for a, b in zip(clock, other)]  # noqa: B905, which takes a third


def _has_loops(line: Line) -> bool:
    return any(type(item) is Round for item in line.items)


def _unrolled(items: Sequence[Item | Round], execution: int = 0) -> Iterator[Item | Event]:
    """Yield the items in execution order, with the edges of loops.

    A loop nested in execution `execution` of its parent has the execution index
    (2 x `execution` + iteration).
    """
    for item in items:
        if isinstance(item, Item):
            yield item
            continue
        first = execution * (ITERATIONS + 1)
        yield "enter", item, first
        for iteration in range(ITERATIONS):
            yield from _unrolled(item.items, execution * ITERATIONS + iteration)
            yield ("turn" if iteration + 1 < ITERATIONS else "leave"), item, first + iteration + 1


Semaphores = tuple[set[int], set[int]]
EVERYWHERE = -1  # in place of a loop's number: the whole stream


def _semaphores(items: Sequence[Item | Round]) -> dict[int, Semaphores]:
    """Return, per loop, the semaphores that its items signal and wait for."""
    by_loop: dict[int, Semaphores] = {}

    def visit(items: Sequence[Item | Round]) -> Semaphores:
        signals: set[int] = set()
        waits: set[int] = set()
        for item in items:
            if isinstance(item, Item):
                signals.update(item.signals)
                for semaphore, _ in item.waits:
                    waits.add(semaphore)
                continue
            nested = visit(item.items)
            by_loop[item.loop] = nested
            signals |= nested[0]
            waits |= nested[1]
        return signals, waits

    by_loop[EVERYWHERE] = visit(items)
    return by_loop
