"""Races between cores: unordered accesses to one tensor in shared HBM, one of them a write.

The streams of all cores are run abstractly. An access is ordered if its vector clock
includes the last conflicting accesses of the other cores; only a rendezvous can achieve that.
Accesses at run-time addresses are left out, as are those of rendezvous instructions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.compiler.semaphores import Clock, join
from nkic.machine.patterns import merged
from nkic.machine.targets import Buffer, Engine
from nkic.program.effects import Touch, touches_of
from nkic.program.overlap import Cells
from nkic.program.program import (
    AccessPattern,
    Instruction,
    Schedule,
    Slot,
    Stream,
    StreamId,
    StreamItem,
    Tensor,
    instructions,
)

# ------------------------------------------------------------------------------------------------
# Abstract execution of all cores' streams, with semaphores but without values and times.
# Each item gets a vector clock: for each stream of every core, the number of items that are
# certainly complete when the item starts. A rendezvous starts when every core has reached it, and
# then merges their clocks. Device loops run for two iterations, which shows the effect of one on
# the next.

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

    @property
    def is_at_rendezvous(self) -> bool:
        instruction = self.next.instruction if self.next is not None else None
        return instruction is not None and instruction.row.is_rendezvous


def unrolled(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    """Yield the slots in execution order."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            for _ in range(ITERATIONS):
                yield from unrolled(item.items)


# --------------------------------------------------------------------------------------------------

MAX_RUNS = 65_536  # contiguous runs of an access that are compared one by one


class Access(NamedTuple):
    """One side of a race."""

    core: int
    instruction: Instruction
    touch: Touch


class Race(NamedTuple):
    """Two unordered conflicting accesses; `first` comes first in the source."""

    tensor: Tensor
    first: Access
    second: Access


def races(schedule: Schedule) -> list[Race]:
    """Return each racing pair of source locations once."""
    if len(schedule.cores) < 2:
        return []
    accesses = _shared(schedule)
    cells = {
        tensor: Cells(touch.box for touch in touches)
        for tensor, touches in _by_tensor(accesses).items()
    }
    hot = {tensor: _contested(accesses, tensor, cells[tensor]) for tensor in cells}
    if not any(hot.values()):
        return []
    finder = _Finder(schedule, accesses, cells, hot)
    finder.run()
    return list(finder.races.values())


def warn(schedule: Schedule, report: Reporter) -> None:
    """Report every race at the later access, with a label at the other."""
    for race in races(schedule):
        first, second = race.first, race.second
        text = (
            f"core {second.core} {_does(second)} `{race.tensor.name}` while core {first.core} "
            f"{_does(first)} it: nothing orders these accesses"
        )
        at = first.instruction.at.primary
        report.warning(
            "core-race",
            text,
            second.instruction.at,
            labels=[Label(at, f"core {first.core} {_does(first)} it here")],
            help=_advice(race),
        )


def _advice(race: Race) -> str:
    """Return how to order the accesses; no barrier separates both cores at the same line."""
    if race.first.instruction.at == race.second.instruction.at:
        return "let one core do it, `if nl.program_id(0) == 0:`, or give each core its own part"
    barrier = f"`nisa.core_barrier({race.tensor.name}, (0, 1))`"
    return f"put {barrier} between them, or let one core do it"


def _does(access: Access) -> str:
    return "writes" if access.touch.writes else "reads"


Accesses = list[dict[int, list[Touch]]]  # by core, then instruction


def _shared(schedule: Schedule) -> Accesses:
    """Return the accesses to shared HBM at compile-time addresses."""
    accesses: Accesses = []
    for body in schedule.program.cores:
        touched = touches_of(body, schedule.program.target)
        by_instruction: dict[int, list[Touch]] = defaultdict(list)
        for instruction in instructions(body):
            for touch in touched[instruction.number] if not instruction.row.is_rendezvous else ():
                pattern = touch.pattern
                if pattern.tensor.buffer is Buffer.SHARED_HBM and pattern.dynamic is None:
                    by_instruction[instruction.number].append(touch)
        accesses.append(by_instruction)
    return accesses


def _by_tensor(accesses: Accesses) -> dict[int, list[Touch]]:
    """Return the accesses to tensors that some instruction writes."""
    by_tensor: dict[int, list[Touch]] = defaultdict(list)
    for touches in (touches for core in accesses for touches in core.values()):
        for touch in touches:
            by_tensor[touch.pattern.tensor.number].append(touch)
    return {n: touches for n, touches in by_tensor.items() if any(t.writes for t in touches)}


def _contested(accesses: Accesses, tensor: int, cells: Cells) -> frozenset[int]:
    """Return the cells that one core writes and another accesses."""
    users: dict[int, set[int]] = defaultdict(set)
    writers: dict[int, set[int]] = defaultdict(set)
    for core, by_instruction in enumerate(accesses):
        for touch in (t for touches in by_instruction.values() for t in touches):
            if touch.pattern.tensor.number == tensor:
                for cell in cells[touch.box]:
                    users[cell].add(core)
                    if touch.writes:
                        writers[cell].add(core)
    return frozenset(cell for cell in writers if len(users[cell]) > 1)


class _State:
    """The last accesses of one core to a cell: position and access by stream."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer: tuple[int, int, Access] | None = None
        self.readers: dict[int, tuple[int, Access]] = {}

    def last(self, writes: bool) -> Iterator[tuple[int, int, Access]]:
        """Yield the accesses that a new access must follow; a write also follows the readers."""
        if self.writer is not None:
            yield self.writer
        if writes:
            yield from ((stream, position, a) for stream, (position, a) in self.readers.items())

    def note(self, stream: int, position: int, access: Access) -> None:
        if access.touch.writes:
            self.writer = (stream, position, access)
            self.readers = {}
        else:
            self.readers[stream] = (position, access)


class _Finder:
    """Runs the streams of all cores as far as possible, and notes the racing accesses."""

    def __init__(
        self,
        schedule: Schedule,
        accesses: Accesses,
        cells: Mapping[int, Cells],
        hot: Mapping[int, frozenset[int]],
    ) -> None:
        self.accesses, self.cells, self.hot = accesses, cells, hot
        self.cores = len(schedule.cores)
        count = sum(map(len, schedule.cores))
        self.runners: list[Runner] = []
        self.same: dict[StreamId, list[Runner]] = defaultdict(list)
        for core, streams in enumerate(schedule.cores):
            for stream in streams:
                runner = Runner(len(self.runners), core, stream, count)
                self.runners.append(runner)
                self.same[stream.id].append(runner)
        self.tokens: list[dict[int, deque[Clock]]] = [defaultdict(deque) for _ in schedule.cores]
        self.states: dict[tuple[int, int], list[_State]] = {}
        self.shared: dict[tuple[AccessPattern, AccessPattern], bool] = {}
        self.races: dict[object, Race] = {}

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for runner in self.runners:
                while parties := self._parties(runner):
                    self._meet(parties)
                    moved = True

    def _parties(self, runner: Runner) -> list[Runner]:
        """Return the runners that step together with `runner`; none while one has to wait."""
        parties = [runner]
        if runner.is_at_rendezvous:
            parties = self.same[runner.stream.id]
            if len(parties) < self.cores or not all(each.is_at_rendezvous for each in parties):
                return []
        return parties if all(map(self._is_ready, parties)) else []

    def _is_ready(self, runner: Runner) -> bool:
        slot, tokens = runner.next, self.tokens[runner.core]
        return slot is not None and all(len(tokens[s]) >= count for s, count in slot.waits)

    def _meet(self, runners: list[Runner]) -> None:
        for runner in runners:
            for semaphore, count in runner.next.waits if runner.next is not None else ():
                for _ in range(count):
                    join(runner.clock, self.tokens[runner.core][semaphore].popleft())
        for runner in runners[1:]:
            join(runners[0].clock, runner.clock)
        for runner in runners[1:]:
            runner.clock[:] = runners[0].clock
        for runner in runners:
            if runner.next is not None:
                self._step(runner, runner.next)

    def _step(self, runner: Runner, slot: Slot) -> None:
        position = runner.done[runner.index] + 1  # counted from 1
        if (instruction := slot.instruction) is not None:
            for touch in self.accesses[runner.core].get(instruction.number, ()):
                if self.hot.get(touch.pattern.tensor.number):
                    self._touch(runner, Access(runner.core, instruction, touch), position)
        join(runner.done, runner.clock)
        runner.done[runner.index] = position
        if runner.stream.id.engine is not Engine.DMA:
            runner.clock[runner.index] = position
        for semaphore in slot.signals:
            self.tokens[runner.core][semaphore].append(list(runner.done))
        runner.next = next(runner.items, None)

    def _touch(self, runner: Runner, access: Access, position: int) -> None:
        tensor = access.touch.pattern.tensor
        for cell in self.cells[tensor.number][access.touch.box]:
            if cell not in self.hot[tensor.number]:
                continue
            states = self.states.get((tensor.number, cell))
            if states is None:
                states = [_State() for _ in range(self.cores)]
                self.states[tensor.number, cell] = states
            for core, state in enumerate(states):
                if core != runner.core:
                    for stream, before, other in state.last(access.touch.writes):
                        if runner.clock[stream] < before:
                            self._race(tensor, other, access)
            states[runner.core].note(runner.index, position, access)

    def _race(self, tensor: Tensor, first: Access, second: Access) -> None:
        first, second = sorted((first, second), key=_place)
        key = (tensor.number, first.instruction.at, second.instruction.at)
        pair = first.touch.pattern, second.touch.pattern
        if key in self.races:
            return
        if pair not in self.shared:
            self.shared[pair] = _share(*pair)
        if self.shared[pair]:
            self.races[key] = Race(tensor, first, second)


def _place(access: Access) -> tuple[Span, int]:
    return access.instruction.at.primary, access.core


def _share(one: AccessPattern, other: AccessPattern) -> bool:
    """Return whether two accesses to a tensor in HBM share a byte."""
    runs, others = _runs(one), _runs(other)
    if runs is None or others is None:
        return True  # too many runs to compare: conservatively as their bounding boxes say
    position = 0
    for low, high in runs:
        while position < len(others) and others[position][1] <= low:
            position += 1
        if position < len(others) and others[position][0] < high:
            return True
    return False


def _runs(pattern: AccessPattern) -> list[tuple[int, int]] | None:
    """Return the contiguous byte ranges in order, or None if there are too many."""
    size = pattern.dtype.size
    dims = [(step * size, num) for step, num in merged(pattern.dims) if num > 1]
    length = size
    if dims and dims[-1][0] == size:
        length *= dims.pop()[1]
    starts = [pattern.offset * size]
    for step, num in dims:
        if len(starts) * num > MAX_RUNS:
            return None
        starts = [start + step * i for start in starts for i in range(num)]
    return sorted((start, start + length) for start in starts)
