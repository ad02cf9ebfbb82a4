"""An event loop without time: items run in any order that the file's semaphores allow.

The possible behaviour of a device: streams are in order, each at its own pace; an item starts when
its stream has reached it and its waits are satisfied, and signals when it completes. Transfers of a
queue are in flight together: each moves its data at some moment between its start and its
completion, and they complete in order (docs/architecture.md, decision 9). Descriptors are made at
the start, so registers have the values of that moment. Nothing else imposes an order: neither
durations nor the use of the DMA engines. A rendezvous of all cores is one step; on a queue it comes
after the transfers in flight there (so that fewer orders are tried than are possible).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from nkic.simulate.debug.observed import Execution, Observer
from nkic.simulate.machine import Machine
from nkic.simulate.storage.memory import Memory
from nkic.simulate.streams import Item, Runner, nothing, unlimited


class Kind(IntEnum):
    """The kind of a stream's next action."""

    RUN = 0  # an item of an engine, or its arrival at a rendezvous
    START = 1  # a transfer consumes its waits
    MOVE = 2  # the transfer's data move
    COMPLETE = 3  # the transfer signals


def transfer_kinds(item: Item) -> tuple[Kind, ...]:
    """Return the actions of a transfer in order; one without data does not move any."""
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

    def __init__(self, *facts: Any, order: Order, memories: Sequence[Memory] = ()) -> None:
        super().__init__(*facts)
        self.order = order
        self.memories = memories
        self.limit_ps = None
        self.log: list[Action] = []
        self.items: dict[tuple[int, int], Item] = {}  # by stream and number
        self._started = [0] * len(self.runners)
        self._flights: list[deque[_Flight]] = [deque() for _ in self.runners]
        self._at_rendezvous: set[int] = set()  # streams that have reached a rendezvous

    def run(self) -> None:
        """Run until every stream has ended; raises as `Machine.run`."""
        for runner in self.runners:
            runner.on_iteration, runner.on_limit = self._count_iteration, self._iteration_limit
            runner.max_iterations = self.options.max_iterations
            runner.current()
        while (action := self.order.choose(self)) is not None:
            self._count_iteration()
            self.do(action)
        for runner in self.runners:
            runner.on_iteration, runner.on_limit = nothing, unlimited
        stuck = [r for r in self.runners if r.item is not None]
        if stuck:
            raise self._deadlock(stuck)
        self.unwritten.finish()

    def ready(self, stream: int) -> Iterator[Action]:
        """Yield the possible actions of the stream."""
        runner, flights = self.runners[stream], self._flights[stream]
        item = runner.item
        if item is not None and stream not in self._at_rendezvous and self._is_ready(runner, item):
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

    def _is_ready(self, runner: Runner, item: Item) -> bool:
        tokens = self.tokens[runner.unit]
        return all(len(tokens[semaphore]) >= count for semaphore, count in item.waits)

    def do(self, action: Action) -> None:
        """Execute one of the actions that `ready` has yielded."""
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
            self._complete(runner, self._flights[action.stream].popleft())

    def _go(self, runner: Runner, action: Action) -> None:
        item = self._begin(runner, action)
        if not item.is_rendezvous:
            self._execute(runner, item, 0, [])
            runner.current()
            return
        self._at_rendezvous.add(runner.index)
        self._enter_rendezvous(runner, item, 0, [])
        for stream in [s for s in self._at_rendezvous if self.runners[s].item is None]:
            self._at_rendezvous.remove(stream)
            self.runners[stream].current()

    def _begin(self, runner: Runner, action: Action) -> Item:
        item = runner.item
        if item is None:
            raise RuntimeError(f"{runner.name} has ended")
        self.items[action.stream, action.number] = item
        self._started[action.stream] += 1
        return item

    def _start(self, runner: Runner, action: Action) -> None:
        item = self._begin(runner, action)
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
        runner.current()

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

    def _complete(self, runner: Runner, flight: _Flight) -> None:
        for semaphore in flight.item.signals:
            self.tokens[runner.unit][semaphore].append(0)


class Recorded(Observer):
    """Records the order of a timed run as actions; transfers complete as soon as they start."""

    def __init__(self) -> None:
        self.log: list[Action] = []
        self._count: dict[int, int] = defaultdict(int)

    def before(self, execution: Execution) -> None:
        """Record the item's actions."""
        runner, item = execution.runner, execution.item
        number = self._count[runner.index]
        self._count[runner.index] += 1
        if not runner.is_dma or item.is_rendezvous:
            self.log.append(Action(runner.index, Kind.RUN, number))
            return
        self.log += [Action(runner.index, kind, number) for kind in transfer_kinds(item)]
