"""Abstract execution of all cores' streams, with semaphores but without values and times.

Each item gets a vector clock: for each stream of every core, the number of items that are certainly
complete when the item starts. A rendezvous starts when every core has reached it, and then merges
their clocks. Device loops run for two iterations, which shows the effect of one on the next.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from nkic.ir.program import Instruction
from nkic.ir.schedule import Schedule, Slot, Stream, StreamId, StreamItem
from nkic.machine.engines import Engine

Clock = list[int]
ITERATIONS = 2


class Runner:
    """The remaining items of one stream, and its clocks. `index` is unique over all cores."""

    def __init__(self, index: int, core: int, stream: Stream, count: int) -> None:
        self.index = index
        self.core = core
        self.stream = stream
        self.items = unrolled(stream.items)
        self.next: Slot | None = next(self.items, None)
        self.clock: Clock = [0] * count
        self.done: Clock = [0] * count


def unrolled(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    """Yield the slots in execution order."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            for _ in range(ITERATIONS):
                yield from unrolled(item.items)


class AbstractRun:
    """Runs a schedule; `visit` is called for every instruction, with the runner's clock."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        count = sum(map(len, schedule.cores))
        self.runners: list[Runner] = []
        self.same: dict[StreamId, list[Runner]] = defaultdict(list)
        for core, streams in enumerate(schedule.cores):
            for stream in streams:
                runner = Runner(len(self.runners), core, stream, count)
                self.runners.append(runner)
                self.same[stream.id].append(runner)
        self.tokens: list[dict[int, deque[Clock]]] = [defaultdict(deque) for _ in schedule.cores]

    def visit(self, runner: Runner, instruction: Instruction, position: int) -> None:
        """Visit `instruction`, the item at `position` in its stream, counted from 1."""

    def run(self) -> list[Runner]:
        """Run as far as possible, and return the streams that are deadlocked."""
        moved = True
        while moved:
            moved = False
            for runner in self.runners:
                while together := self._together(runner):
                    self._meet(together)
                    moved = True
        return [runner for runner in self.runners if runner.next is not None]

    def _together(self, runner: Runner) -> list[Runner]:
        """Return the runners that step together with `runner`; none while it must wait."""
        slot = runner.next
        if slot is None or not self._ready(runner, slot):
            return []
        if slot.instruction is None or not slot.instruction.row.is_rendezvous:
            return [runner]
        others = self.same[runner.stream.id]
        everybody = len(others) == len(self.schedule.cores)
        return others if everybody and all(map(self._arrived, others)) else []

    def _arrived(self, runner: Runner) -> bool:
        slot = runner.next
        if slot is None or slot.instruction is None or not slot.instruction.row.is_rendezvous:
            return False
        return self._ready(runner, slot)

    def _ready(self, runner: Runner, slot: Slot) -> bool:
        tokens = self.tokens[runner.core]
        return all(len(tokens[s]) >= count for s, count in slot.waits)

    def _meet(self, runners: list[Runner]) -> None:
        for runner in runners:
            for semaphore, count in runner.next.waits if runner.next is not None else ():
                for _ in range(count):
                    join(runner.clock, self.tokens[runner.core][semaphore].popleft())
        if len(runners) > 1:
            for runner in runners[1:]:
                join(runners[0].clock, runner.clock)
            for runner in runners[1:]:
                runner.clock[:] = runners[0].clock
        for runner in runners:
            if runner.next is not None:
                self._step(runner, runner.next)

    def _step(self, runner: Runner, slot: Slot) -> None:
        position = runner.done[runner.index] + 1
        if slot.instruction is not None:
            self.visit(runner, slot.instruction, position)
        join(runner.done, runner.clock)
        runner.done[runner.index] = position
        if runner.stream.id.engine is not Engine.DMA:
            runner.clock[runner.index] = position
        for semaphore in slot.signals:
            self.tokens[runner.core][semaphore].append(list(runner.done))
        runner.next = next(runner.items, None)


def join(clock: Clock, other: Clock) -> None:
    """Merge `other` into `clock` (element-wise maximum)."""
    for i, value in enumerate(other):
        if value > clock[i]:
            clock[i] = value
