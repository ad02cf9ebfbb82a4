"""The search stage: tries other plans for a program, and keeps the shortest schedule."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import NamedTuple

from nkic.artifact.pace import duration
from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.compiler.allocate import REST, Lifetime, Space, allocate, lifetimes_in, space_of
from nkic.compiler.bound import bound_ns, has_loops
from nkic.compiler.emit import emit
from nkic.compiler.schedule import ListScheduler, Orderer, schedule
from nkic.machine.targets import MEMORIES, PSUM_BANK_BYTES, Buffer, Target
from nkic.program.effects import Touches, touches_of
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Instruction,
    Program,
    Schedule,
    Tensor,
    instructions,
    renumbered,
)

# ---- An order of instructions that is planned together with memory ------------------------------
# This is list scheduling in which an instruction also waits for room for the tensors that it
# accesses first. Tensors are admitted in the order of their first access in the program, as soon
# as there is room: loads run ahead as far as memory allows, in the order in which they are needed,
# and a program that fits in its own order cannot deadlock.


def plan(
    body: Body, graph: DependenceGraph, target: Target, share: float, by_program: bool
) -> tuple[Body, DependenceGraph] | None:
    """Return `body`, which has no device loops or fixed addresses, in the planned order, or None.

    `share` is the fraction of each memory that is used. Among ready instructions, the longest path
    to the end goes first or, with `by_program`, the first in program order.
    """
    memories = [
        _Memory(space_of(buffer, target), lives, share)
        for buffer, lives in zip(MEMORIES, lifetimes_in(body, target, MEMORIES), strict=True)
    ]
    code = [*instructions(body)]
    planner = _Planner(Orderer(graph, target), code, memories, touches_of(body, target))
    if by_program:
        planner.priorities = range(len(code))
    order = planner.plan()
    return renumbered(tuple([code[index] for index in order]), graph) if order else None


class _Memory:
    """The free bytes of one memory, and its tensors in order of their first access."""

    def __init__(self, space: Space, lives: Sequence[Lifetime], share: float) -> None:
        self.sizes = {life.tensor.number: space.size(life.tensor) for life in lives}
        self.waiting = deque(life.tensor.number for life in lives)
        self.room = int(space.capacity * share)

    def admit(self) -> Iterable[int]:
        """Yield the next tensors, as many as fit."""
        while self.waiting and self.sizes[self.waiting[0]] <= self.room:
            tensor = self.waiting.popleft()
            self.room -= self.sizes[tensor]
            yield tensor

    def release(self, tensor: int) -> None:
        self.room += self.sizes[tensor]


class _Planner(ListScheduler):
    def __init__(
        self,
        orderer: Orderer,
        code: Sequence[Instruction],
        memories: Sequence[_Memory],
        touched: Touches,
    ) -> None:
        super().__init__(orderer, orderer.known(code))
        self.memories = memories
        self.memory_of = {tensor: memory for memory in memories for tensor in memory.sizes}
        tracked = self.memory_of.keys()
        self.tensors = [
            {touch.pattern.tensor.number for touch in touched[one.number]} & tracked for one in code
        ]
        self.users: dict[int, list[int]] = defaultdict(list)
        for index, tensors in enumerate(self.tensors):
            self.missing[index] += len(tensors)
            for tensor in tensors:
                self.users[tensor].append(index)
        self.remaining = {tensor: len(users) for tensor, users in self.users.items()}
        self.last = dict.fromkeys(self.users, 0)
        self.ends: list[tuple[int, int]] = []  # when a tensor is released, and its number

    def plan(self) -> list[int] | None:
        """Return the code in order of issue, or None on deadlock."""
        self.begin()
        self._admit(self.orderer.now)
        order: list[int] = []
        issues = self.issues()
        while len(order) < len(self.code):
            if not self._release_until_next():
                return None
            order.append(next(issues))
            index = order[-1]
            done = self.done[index] + self.orderer.semaphore_ps
            for tensor in sorted(self.tensors[index]):
                self.last[tensor] = max(self.last[tensor], done)
                self.remaining[tensor] -= 1
                if not self.remaining[tensor]:
                    heappush(self.ends, (self.last[tensor], tensor))
        return order

    def _release_until_next(self) -> bool:
        """Release the tensors that end before the next start; return whether there is one."""
        start = self.next_start()
        while self.ends and (start is None or self.ends[0][0] <= start):
            now, tensor = heappop(self.ends)
            self.memory_of[tensor].release(tensor)
            self._admit(now)
            start = self.next_start()
        return start is not None

    def _admit(self, now: int) -> None:
        for memory in self.memories:
            for tensor in memory.admit():
                for index in self.users[tensor]:
                    self.ready_at[index] = max(self.ready_at[index], now)
                    self.release(index)


# --------------------------------------------------------------------------------------------------

# factor of the lower bound, by level, within which a schedule is not improved
CLOSE = {1: 1.01, 2: 1.0}
Graphs = tuple[DependenceGraph, ...]


class Trial(NamedTuple):
    """The parameters of one plan. Without `share`, program order is kept.

    `rest`, `pack` and `roles` are allocate's, `in_order` is schedule's.
    """

    share: float | None
    by_program: bool = False
    rest: int = REST
    in_order: bool = False
    pack: bool = True
    roles: bool = False


class Tried(NamedTuple):
    """A trial with its time in nanoseconds, or None if the program did not fit."""

    trial: Trial
    ns: float | None


@dataclass(frozen=True)
class Searched:
    """The record of a search.

    It holds the time of the first schedule, in nanoseconds; the program and a function that returns
    its graphs, without reuse edges; the trials, in order; and the trial that was kept, if any.
    """

    first_ns: float
    lowered: Program
    graphs_of: Callable[[], Graphs]
    tried: tuple[Tried, ...] = ()
    kept: Trial | None = None

    @cached_property
    def graphs(self) -> Graphs:
        return self.graphs_of()

    @cached_property
    def bound_ns(self) -> float:
        """The lower bound that schedules were compared with, in nanoseconds."""
        return bound_ns(self.lowered, self.graphs)


class ScheduledProgram(NamedTuple):
    """A placed program with its graphs, reuse edges included, and its schedule.

    `searched` is None if there was no search.
    """

    placed: Program
    graphs: Graphs
    schedule: Schedule
    searched: Searched | None = None


# If program order does not fit: an order that deadlocks is not tried again with less memory.
FIT_ORDERS = ((1.0, 0.95, 0.8), (False, True))  # shares, and values of `by_program`


TRIALS = {
    1: (Trial(1.0, by_program=True), Trial(None, roles=True)),
    2: (
        Trial(None, roles=True),
        *(Trial(None, rest=rest, in_order=True) for rest in (REST, 64)),
        *(Trial(None, rest=rest) for rest in (2, 4, 16, 32, 64)),
        *(
            Trial(share, by_program, rest)
            for share in (1.0, 0.75, 0.5, 0.25)
            for by_program in (False, True)
            for rest in (REST, 64)
        ),
    ),
}


def fit(lowered: Program, graphs: Graphs, report: Reporter) -> tuple[Program, Graphs]:
    """Return addresses in program order or close to it, else in an order planned with memory.

    Errors are reported for the program as written.
    """
    reporter = Reporter(report.max_errors)
    with suppress(CompileFailed):
        return allocate(lowered, graphs, reporter)
    reorderable = [_may_reorder(body) for body in lowered.cores]
    plans: list[tuple[Program, Graphs]] = []
    for candidate in _plans(lowered, graphs, reorderable) if any(reorderable) else ():
        plans.append(candidate)
        if fitted := _placed(*candidate, Trial(None, pack=False)):
            return fitted
    for candidate in plans:
        if fitted := _placed(*candidate, Trial(None)):
            return fitted
    for diagnostic in reporter.all:
        report.add(diagnostic)
    raise CompileFailed(report.all)


def _plans(
    lowered: Program, graphs: Graphs, reorderable: Sequence[bool]
) -> Iterator[tuple[Program, Graphs]]:
    """Yield the program in orders that are planned together with memory."""
    shares, first = FIT_ORDERS
    stuck: set[bool] = set()
    for share in shares:
        for by_program in first:
            if by_program in stuck:
                continue
            planned = _planned(lowered, graphs, reorderable, Trial(share, by_program))
            if planned is not None:
                yield planned
            else:
                stuck.add(by_program)


def search(
    lowered: Program, graphs_of: Callable[[], Graphs], first: ScheduledProgram, level: int
) -> ScheduledProgram:
    """Return the shortest schedule of `lowered` among `first` and the trials of `level` (1 or 2).

    `graphs_of` returns those of `lowered`, without reuse edges; it is called only if `first` is not
    close to the busiest engine's time. The search stops at the first schedule close to the bound.
    Schedules are compared by the time of a run. The scheduler knows it for one
    core; for several cores, which wait for each other, level 2 computes it from the file.
    """
    reorderable = [_may_reorder(body) for body in lowered.cores]
    if not any(reorderable):
        return first
    measure = run_ns if level > 1 and len(reorderable) > 1 else planned_ns
    best, best_ns = first, measure(first)
    searched, tried, best_trial = Searched(best_ns, lowered, graphs_of), list[Tried](), None
    if best_ns <= CLOSE[level] * first.schedule.busiest_ns:  # the bound is never below that time
        return first._replace(searched=searched)
    banks_are_shared = _banks_are_shared(lowered)
    for trial in TRIALS[level]:
        if trial.roles and not banks_are_shared:
            continue
        if best_ns <= CLOSE[level] * searched.bound_ns:
            break
        scheduled = _attempt(lowered, searched.graphs, reorderable, trial)
        time = measure(scheduled) if scheduled is not None else None
        tried.append(Tried(trial, time))
        if scheduled is not None and time is not None and time < best_ns:
            best, best_ns = scheduled, time
            best_trial = trial
    return best._replace(searched=replace(searched, tried=tuple(tried), kept=best_trial))


def _banks_are_shared(program: Program) -> bool:
    """Return whether tiles of several declarations must share the banks of PSUM."""
    tiles = [tensor for tensor in program.tensors if tensor.buffer is Buffer.PSUM]
    banks = sum(-(-tensor.bytes // PSUM_BANK_BYTES) for tensor in tiles)
    return banks > program.target.psum_banks and len({tile.at.primary for tile in tiles}) > 1


def planned_ns(scheduled: ScheduledProgram) -> float:
    return scheduled.schedule.estimate_ns


def run_ns(scheduled: ScheduledProgram) -> float:
    """Return the time of a run in nanoseconds, or the estimate if it depends on the run."""
    executable = emit(scheduled.schedule, {})
    time = duration(executable, scheduled.placed.target.used_by(executable.cores))
    return scheduled.schedule.estimate_ns if time is None else time / 1000


def _attempt(
    lowered: Program, graphs: Graphs, reorderable: Sequence[bool], trial: Trial
) -> ScheduledProgram | None:
    """Return the program as planned by `trial`, or None if it does not fit.

    `reorderable` tells for each core whether its order may change.
    """
    planned = _planned(lowered, graphs, reorderable, trial)
    fitted = _placed(*planned, trial) if planned is not None else None
    return ScheduledProgram(*fitted, schedule(*fitted, in_order=trial.in_order)) if fitted else None


def _placed(moved: Program, graphs: Graphs, trial: Trial) -> tuple[Program, Graphs] | None:
    with suppress(CompileFailed):
        return allocate(moved, graphs, Reporter(1), trial.rest, trial.pack, trial.roles)
    return None


def _planned(
    program: Program, graphs: Graphs, reorderable: Sequence[bool], trial: Trial
) -> tuple[Program, Graphs] | None:
    """Return each core in the order of the trial, or unchanged if it cannot be planned.

    Return None if no core can be planned.
    """
    if trial.share is None:
        return program, graphs
    target = program.target.used_by(len(program.cores))
    cores = []
    for body, graph, may_move in zip(program.cores, graphs, reorderable, strict=True):
        planned = plan(body, graph, target, trial.share, trial.by_program) if may_move else None
        cores.append(planned or (body, graph))
    if all(body is original for (body, _), original in zip(cores, program.cores, strict=True)):
        return None
    bodies, planned_graphs = zip(*cores, strict=True)
    return replace(program, cores=bodies), planned_graphs


def _may_reorder(body: Body) -> bool:
    """Return whether nkic may choose all addresses and the order."""
    if has_loops(body):
        return False
    return all(tensor.fixed is None for tensor in _tensors_of(body) if tensor.on_chip)


def _tensors_of(body: Body) -> Iterator[Tensor]:
    """Yield the tensors of all operands and of run-time offsets."""
    for instruction in instructions(body):
        for operand in instruction.operands:
            if isinstance(operand, AccessPattern):
                yield operand.tensor
                if operand.dynamic and isinstance(operand.dynamic.source, AccessPattern):
                    yield operand.dynamic.source.tensor
