"""Fuzzing of execution orders: whether outputs depend on anything but the semaphores.

The program runs in many of the orders that its semaphores allow. If an order changes the outputs,
the two instructions whose order matters are found by bisection between the two orders.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, PatternRecord, source_of
from nkic.base.diagnostics import Diagnostic, Label, ProgramFault, make
from nkic.base.text import clean, listed
from nkic.simulate.machine import Machine
from nkic.simulate.observed import Execution, Observer, line_of, written
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate_ranks
from nkic.simulate.streams import Item, Runner

# ------------------------------------------------------------------------------------------------
# An event loop without time: items run in any order that the file's semaphores allow.
# The possible behaviour of a device: streams are in order, each at its own pace; an item starts
# when its stream has reached it and its waits are satisfied, and signals when it completes.
# Transfers of a queue are in flight together: each moves its data at some moment between its start
# and its completion, and they complete in order (docs/decisions.md, decision 9). Descriptors
# are made at the start, so registers have the values of that moment. Nothing else imposes an
# order: neither durations nor the use of the DMA engines. A rendezvous of all cores is one step;
# on a queue it comes after the transfers in flight there (so that fewer orders are tried than are
# possible).


class Kind(IntEnum):
    RUN = 0  # an item of an engine, or its arrival at a rendezvous
    START = 1  # a transfer consumes its waits
    MOVE = 2  # the transfer's data move
    COMPLETE = 3  # the transfer signals


def transfer_kinds(item: Item) -> tuple[Kind, ...]:
    if item.step is None:
        return Kind.START, Kind.COMPLETE
    return Kind.START, Kind.MOVE, Kind.COMPLETE


class Action(NamedTuple):
    """An action of a stream, by its index; `number` counts the executed items, loops unrolled."""

    stream: int
    kind: Kind
    number: int


class Order(Protocol):
    """Chooses the next action; None if none is possible."""

    def choose(self, machine: Interleaved) -> Action | None: ...


@dataclass(slots=True)
class _Flight:
    """A transfer in flight, with the `registers` at its start."""

    number: int
    item: Item
    moved: bool
    registers: tuple[list[int], dict[int, int]] | None


class Interleaved(Machine):
    """Executes the actions that `order` chooses, and keeps a `log` of them."""

    def __init__(self, order: Order, *facts: Any) -> None:
        super().__init__(*facts)
        self.order = order
        self.log: list[Action] = []
        self.items: dict[tuple[int, int], Item] = {}  # by stream and number
        self._started = [0] * len(self.runners)
        self._flights: list[deque[_Flight]] = [deque() for _ in self.runners]
        self._at_rendezvous: set[int] = set()  # streams that have reached a rendezvous

    def run(self) -> int:
        """Run until every stream has ended; raises as `Machine.run`."""
        self._choose()
        for runner in self.runners:
            runner.next()
        while (action := self.order.choose(self)) is not None:
            self.do(action)
        self._finish()
        return self.end

    def ready(self, stream: int) -> Iterator[Action]:
        runner, flights = self.runners[stream], self._flights[stream]
        item = runner.item
        is_there = stream in self._at_rendezvous
        if item is not None and not is_there and not self.lacking(runner, item):
            if not runner.is_dma:
                yield Action(stream, Kind.RUN, self._started[stream])
            elif not item.is_rendezvous:
                yield Action(stream, Kind.START, self._started[stream])
            elif not flights:
                yield Action(stream, Kind.RUN, self._started[stream])
        for flight in flights:
            if not flight.moved:
                yield Action(stream, Kind.MOVE, flight.number)
        if flights and flights[0].moved:
            yield Action(stream, Kind.COMPLETE, flights[0].number)

    def do(self, action: Action) -> None:
        self.log.append(action)
        runner = self.runners[action.stream]
        if action.kind is Kind.RUN:
            self._go(runner, action)
        elif action.kind is Kind.START:
            self._start(runner, action)
        elif action.kind is Kind.MOVE:
            flights = self._flights[action.stream]
            self._move(runner, next(flight for flight in flights if flight.number == action.number))
        else:
            for semaphore in self._flights[action.stream].popleft().item.signals:
                self.tokens[runner.unit][semaphore].append(0)

    def _go(self, runner: Runner, action: Action) -> None:
        item = self._taken(runner, action)
        if not item.is_rendezvous:
            self._execute(runner, item, 0, [])
            runner.next()
            return
        self._at_rendezvous.add(runner.index)
        self._reach(runner, item, 0, [])
        for stream in [s for s in self._at_rendezvous if self.runners[s].item is None]:
            self._at_rendezvous.remove(stream)
            self.runners[stream].next()

    def _taken(self, runner: Runner, action: Action) -> Item:
        item: Item = runner.item
        self.items[action.stream, action.number] = item
        self._started[action.stream] += 1
        return item

    def _start(self, runner: Runner, action: Action) -> None:
        item = self._taken(runner, action)
        for semaphore, count in item.waits:
            for _ in range(count):
                self.tokens[runner.unit][semaphore].popleft()
        registers = runner.state.registers
        registers_at_start = (
            (list(registers.shared), dict(registers.counters)) if item.dynamic is not None else None
        )
        flight = _Flight(action.number, item, item.step is None, registers_at_start)
        self._flights[runner.index].append(flight)
        runner.next_index += 1
        runner.item = None
        runner.next()

    def _move(self, runner: Runner, flight: _Flight) -> None:
        flight.moved = True
        if flight.registers is None:
            self._run(runner, flight.item)
            return
        registers = runner.state.registers
        now = list(registers.shared), registers.counters
        registers.shared[:], registers.counters = flight.registers
        self._run(runner, flight.item)
        registers.shared[:], registers.counters = now


class Recorded(Observer):
    """Records the order of a timed run as actions; transfers complete as soon as they start."""

    def __init__(self) -> None:
        self.log: list[Action] = []
        self._count: dict[int, int] = defaultdict(int)

    def before(self, execution: Execution) -> None:
        runner, item = execution.runner, execution.item
        number = self._count[runner.index]
        self._count[runner.index] += 1
        if not runner.is_dma or item.is_rendezvous:
            self.log.append(Action(runner.index, Kind.RUN, number))
            return
        self.log += [Action(runner.index, kind, number) for kind in transfer_kinds(item)]


# ---- Orders of a run: drawn from a seed, or given as a list -------------------------------------

_CHANGE_RATES = (0.0, 0.02, 0.2, 1.0)  # the probability at every step that the priorities change


class Transfers(Enum):
    EAGER = "eager"  # at the start, and they signal at once
    LATE = "late"  # when nothing else is left to do
    MIXED = "mixed"  # at any moment


class Drawn:
    """The `number`-th order of a seed.

    Streams have priorities, and the first one that can continue does, so that some run far ahead of
    others, which a fair choice between them rarely achieves.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.number = number
        self.random = Random(f"{seed}/{number}")
        self.transfers = [*Transfers][number % len(Transfers)]
        self.change = _CHANGE_RATES[number // len(Transfers) % len(_CHANGE_RATES)]
        self._priorities: list[int] = []
        self._pending: list[Action] = []

    def choose(self, machine: Interleaved) -> Action | None:
        if self._pending:
            return self._pending.pop(0)
        if not self._priorities or self.random.random() < self.change:
            self._priorities = list(range(len(machine.runners)))
            self.random.shuffle(self._priorities)
        postponed: list[Action] = []
        for stream in self._priorities:
            ready = list(machine.ready(stream))
            if ready and self.transfers is Transfers.MIXED:
                return self.random.choice(ready)
            for action in ready:
                if action.kind in (Kind.RUN, Kind.START):
                    if action.kind is Kind.START and self.transfers is Transfers.EAGER:
                        item = machine.runners[action.stream].item
                        following = transfer_kinds(item)[1:] if item is not None else ()
                        self._pending = [action._replace(kind=kind) for kind in following]
                    return action
            postponed += ready
        return postponed[0] if postponed else None


class Scripted:
    """The possible actions of a list, in order; then whatever is left to do."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = actions
        self._position = 0

    def choose(self, machine: Interleaved) -> Action | None:
        while self._position < len(self.actions):
            action = self.actions[self._position]
            self._position += 1
            if action in machine.ready(action.stream):
                return action
        ready = (action for s in range(len(machine.runners)) for action in machine.ready(s))
        return next(ready, None)


# --------------------------------------------------------------------------------------------------

Arrays = Mapping[str, NDArray[np.generic]]
Log = Sequence[Action]


class Outcome(NamedTuple):
    """Hashes of the outputs of every rank, or the failure of the run."""

    outputs: tuple[tuple[str, str], ...]
    failure: str = ""

    def differs(self, other: Outcome) -> str:
        if other.failure:
            return f"a run that fails: {other.failure}"
        if self.failure:
            return "a run that does not fail"
        names = [
            n
            for (n, hash_here), (_, hash_there) in zip(self.outputs, other.outputs, strict=True)
            if hash_here != hash_there
        ]
        return f"other values in {', '.join(f'`{name}`' for name in names)}"


class Party(NamedTuple):
    """One of two instructions that race."""

    runner: Runner
    item: Item


class Race(NamedTuple):
    """A drawn order changes the outputs, and `first` and `second` are the cause.

    They are adjacent in two orders that are otherwise the same; `first` is before `second` in the
    order with the outputs of the normal run. Both are None if neither order can be transformed into
    the other, because loops take different decisions.
    """

    drawn: Drawn
    difference: str
    first: Party | None
    second: Party | None
    machine: Interleaved


class Fuzz:
    """Tries orders of one program on one set of inputs."""

    def __init__(
        self, executable: Executable, inputs: Sequence[Arrays], options: RunOptions, seed: int
    ) -> None:
        self.executable, self.inputs = executable, inputs
        # Other orders split a transfer into parts, which the race detector does not follow; its
        # vector clocks find the races of every order in the normal run.
        self.options = replace(
            options, max_cycles=None, trace=0, timeline=0, report_bounds=False, check_races=False
        )
        self.seed = seed

    def search(self, count: int) -> Race | None:
        """Return the first of `count` orders whose outputs differ from the normal run's, if any."""
        recorded = Recorded()
        normal = self._outcome(observers=[recorded])
        for number in range(count):
            drawn = Drawn(self.seed, number)
            machine, outcome = self.run(drawn)
            if outcome != normal:
                return self._race(drawn, normal, outcome, recorded.log, machine)
        return None

    def run(self, order: Order) -> tuple[Interleaved, Outcome]:
        machines: list[Interleaved] = []

        def make(*facts: Any) -> Interleaved:
            machines.append(Interleaved(order, *facts))
            return machines[-1]

        outcome = self._outcome(loop=make)
        return machines[0], outcome

    def _outcome(self, **how: Any) -> Outcome:
        try:
            results = simulate_ranks(self.executable, self.inputs, self.options, **how)
        except ProgramFault as fault:
            diagnostic = fault.diagnostics[0]
            return Outcome((), f"{diagnostic.code.slug}: {diagnostic.message}")
        outputs = [pair for result in results for pair in result.outputs.items()]
        return Outcome(tuple((n, sha256(a.tobytes()).hexdigest()) for n, a in outputs))

    def _race(
        self, drawn: Drawn, normal: Outcome, outcome: Outcome, before: Log, machine: Interleaved
    ) -> Race:
        """Find the race between the orders of the normal run and of `machine`.

        A failed run is incomplete: the search continues it like the other one.
        """
        whole, part = (machine.log, before) if normal.failure else (before, machine.log)
        wanted = outcome if normal.failure else normal
        pair = Bisection(lambda order: self.run(Scripted(order))[1] == wanted)
        actions = pair.search(whole, part)
        difference = normal.differs(outcome)
        if actions is None:
            return Race(drawn, difference, None, None, machine)
        full, _ = self.run(Scripted(whole))
        items = {**machine.items, **full.items}
        first, second = (_party(full, items, action) for action in actions)
        if normal.failure:
            first, second = second, first
        return Race(drawn, difference, first, second, machine)


def _party(
    machine: Interleaved, items: Mapping[tuple[int, int], Item], action: Action
) -> Party | None:
    item = items.get((action.stream, action.number))
    return Party(machine.runners[action.stream], item) if item is not None else None


class Bisection:
    """Finds two actions whose order decides whether an order `is_normal`."""

    def __init__(self, is_normal: Callable[[Sequence[Action]], bool]) -> None:
        self.is_normal = is_normal

    def search(
        self, normal: Sequence[Action], other: Sequence[Action]
    ) -> tuple[Action, Action] | None:
        """Return the action that is first in `normal`, and the one that is first in `other`.

        Every order tried is a prefix of `other` continued as `normal`: both satisfy the semaphores,
        and so does the combination.
        """

        def combined(count: int) -> list[Action]:
            done = set(other[:count])
            return [*other[:count], *(action for action in normal if action not in done)]

        if self.is_normal(combined(len(other))) or not self.is_normal(combined(0)):
            return None
        count = self._bisect(combined, 0, len(other))
        return self._obstacle(combined(count), other[count], count)

    def _obstacle(
        self, order: list[Action], late: Action, start: int
    ) -> tuple[Action, Action] | None:
        """Return the action that `late` must not precede, as it moves ahead to `start`."""
        if late not in order:
            return None
        index = order.index(late)

        def ahead(steps: int) -> list[Action]:
            position = index - steps
            return [*order[:position], late, *order[position:index], *order[index + 1 :]]

        steps = self._bisect(ahead, 0, index - start)
        return order[index - steps - 1], late

    def _bisect(self, order: Callable[[int], list[Action]], low: int, high: int) -> int:
        """Bisect: return the last number, from `low`, whose order is usual."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.is_normal(order(middle)):
                low = middle
            else:
                high = middle
        return low


# ---- The error for a race found by fuzzing: what two instructions do to the same bytes ----------


def diagnostic(executable: Executable, race: Race, seed: int) -> Diagnostic:
    drawn = race.drawn
    order = f"order {drawn.number} of seed {seed}, with {drawn.transfers.value} DMA"
    note = f"{order}, gives {race.difference}"
    first, second = race.first, race.second
    help = "compile the kernel again: nkic proves that its output orders all conflicts"
    if first is None or second is None:
        text = "the outputs depend on an order that no semaphore enforces"
        return make("order-race", text, notes=[note], help=help)
    if first.runner.unit != second.runner.unit:
        help = "put `nisa.core_barrier` between them: nothing else orders two cores"
    both = listed(_what(executable, party) for party in (first, second))
    conflicts = sorted(set(_conflicts(executable, race, first, second)))
    over = f" over {listed(conflicts)}" if conflicts else " over a register or an engine's state"
    second_span, first_span = (
        source_of(executable, party.item.record.place) for party in (second, first)
    )
    return make(
        "order-race",
        f"{both} race{over}: no semaphore orders the two",
        second_span,
        labels=[Label(first_span, "the normal run executes this one first")] if first_span else [],
        notes=[f"{note}; the order of these two instructions makes the difference"],
        help=help,
    )


def _what(executable: Executable, party: Party) -> str:
    record = party.item.record
    name = record.row.name if record.row is not None else "nothing"
    return f"{name} of line {line_of(executable, record.place)} on {party.runner.name}"


def _conflicts(executable: Executable, race: Race, a: Party, b: Party) -> Iterator[str]:
    """Yield the names of the tensors over which they conflict.

    They conflict if one of two accesses is a write and they may share bytes.
    """
    memory = race.machine.ranks[a.runner.rank].memory
    names = executable.tensors
    for first, first_writes in _accesses(executable, race, a):
        for second, second_writes in _accesses(executable, race, b):
            if (first_writes or second_writes) and memory.may_overlap(
                first.standing, second.standing
            ):
                both = {names[first.tensor].name, names[second.tensor].name}
                yield listed(f"`{clean(name)}`" for name in sorted(both))


def _accesses(
    executable: Executable, race: Race, party: Party
) -> Iterator[tuple[PatternRecord, bool]]:
    runner, item = party
    target = race.machine.options.target_of(executable)
    writes = written(executable, target, runner, item)
    for operand in item.record.operands:
        if isinstance(operand, PatternRecord):
            yield operand, operand in writes.get(operand.tensor, ())
