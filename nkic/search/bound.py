"""A lower bound of a program's time, whatever the order and the addresses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Tables, Warmth, commands_beside, semaphore_ps
from nkic.schedule.placed import Timings, engine_of, queues_of, table_of


def bound_ns(program: Program, graphs: Sequence[DependenceGraph]) -> float:
    """Nanoseconds that the cores take at least; `graphs` as for `bound`."""
    target = program.target.used_by(len(program.cores))
    pairs = zip(program.cores, graphs, strict=True)
    return max((bound(body, graph, target) for body, graph in pairs), default=0) / 1000


def has_loops(body: Body) -> bool:
    """There are device loops in the body."""
    return any(isinstance(item, Loop) for item in body)


def bound(body: Body, graph: DependenceGraph, target: Target) -> int:
    """Picoseconds that `body` takes at least.

    For each engine: of the instructions that cannot start before some moment, all their time on
    it one after the other from then on, and the shortest way from any of them to the end. An
    engine with one instruction gives the longest path. `graph` has no edges of reuse. Of device
    loops: `_looped`; one whose end a register decides counts as one turn, as in an estimate.
    """
    timings = Timings(target)
    if has_loops(body):
        return _looped(body, graph, target, timings)
    code = [_Job(one, target, timings) for one in instructions(body)]
    return _straight(code, graph, target, is_start=True)


def _looped(body: Body, graph: DependenceGraph, target: Target, timings: Timings) -> int:
    """What is done in loops is done in every turn: by the engine that has most to do, and by what
    goes around from turn to turn.
    """
    busy: Counter[Engine] = Counter()
    longest = 0
    for loop in _rounds(body):
        code = [_Job(one, target, timings) for one in loop.code]
        for job in code:
            for engine in {job.engine, job.by}:
                busy[engine] += loop.times * job.on(engine)
        if loop.times:
            around = _around(code, graph, semaphore_ps(target)) if loop.turns > 1 else 0
            longest = max(longest, _straight(code, graph, target) + (loop.turns - 1) * around)
    return max(longest, *busy.values(), 0)


class _Round(NamedTuple):
    """The instructions that stand in a loop, but in none inside it; its turns each time that it is
    entered, and all of them.
    """

    code: list[Instruction]
    turns: int
    times: int


def _rounds(body: Body, turns: int = 1, times: int = 1) -> Iterator[_Round]:
    yield _Round([item for item in body if isinstance(item, Instruction)], turns, times)
    for item in body:
        if isinstance(item, Loop):
            inside = 1 if item.trips is None else item.trips
            yield from _rounds(item.body, inside, times * inside)


def _around(code: Sequence[_Job], graph: DependenceGraph, signal: int) -> int:
    """How long a turn takes at least after the one before: the longest way from an instruction to
    one that it waits for in the turn after, and back.
    """
    known = {job.number: job for job in code}
    longest = 0
    for first in code:
        edges = [e for e in graph.sources(first.number) if e.distance and e.source in known]
        ways = _ways(first, code, known, graph, signal) if edges else {}
        sources = (known[e.source] for e in edges if e.source in ways)
        back = [ways[one.number] + one.until(first, signal) for one in sources]
        longest = max(longest, *back, 0)
    return longest


def _ways(
    first: _Job,
    code: Sequence[_Job],
    known: Mapping[int, _Job],
    graph: DependenceGraph,
    signal: int,
) -> dict[int, int]:
    """The longest ways from the start of `first` to that of those that wait for it."""
    ways = {first.number: 0}
    for job in code:
        before = [e.source for e in graph.sources(job.number) if not e.distance]
        found = [ways[s] + known[s].until(job, signal) for s in before if s in ways]
        if found:
            ways[job.number] = max(found)
    return ways


def _straight(
    code: list[_Job], graph: DependenceGraph, target: Target, is_start: bool = False
) -> int:
    """The bound of instructions that run once. At the start of a kernel the tensor engine is cold
    and the scalar engine holds no table.
    """
    known = {job.number: job for job in code}
    before = {
        job.number: [
            known[e.source]
            for e in graph.sources(job.number)
            if e.source in known and not e.distance
        ]
        for job in code
    }
    signal = semaphore_ps(target)
    if is_start:
        _load_tables(code, before, Tables(target).load)
    _set_earliest(code, before, signal)
    cold = _Cold(code, target) if is_start else None
    if cold is not None:
        _set_earliest(code, before, signal, cold)
    _set_rest(code, before, signal)
    by_engine: dict[Engine, list[_Job]] = defaultdict(list)
    for job in code:
        by_engine[job.engine].append(job)
        if job.trigger:
            by_engine[job.by].append(job)
    paths = [job.earliest + job.slower + job.rest for job in code]
    busy = [_busy(e, js, cold if e is Engine.TENSOR else None) for e, js in by_engine.items()]
    return max([*busy, *paths], default=0)


def most_busy(program: Program) -> dict[Engine, int]:
    """Picoseconds that each engine is busy at least, on the core where it is most."""
    target = program.target.used_by(len(program.cores))
    timings, found = Timings(target), dict.fromkeys(Engine, 0)
    for body in program.cores:
        jobs = [(_Job(i, target, timings), r.times) for r in _rounds(body) for i in r.code]
        for engine in Engine:
            found[engine] = max(found[engine], sum(n * job.on(engine) for job, n in jobs))
    return found


class _Job:
    """An instruction: its engine, and when it can start and how long it takes at least."""

    def __init__(self, one: Instruction, target: Target, timings: Timings) -> None:
        self.number = one.number
        self.engine = engine_of(one)
        queues = queues_of(one, target) if self.engine is Engine.DMA else range(1)
        times = [timings.of(one, queue) for queue in queues]
        time = min(times, key=lambda t: t.start)
        self.by = time.by
        same = {t.by for t in times} == {time.by}
        self.trigger = time.trigger if same and not commands_beside(time.by) else 0
        self.hold = time.hold
        self.busy = time.pool if self.engine is Engine.DMA else time.hold
        self.length = time.start + time.hold + time.latency
        self.table = table_of(one)
        self.earliest = self.rest = 0
        self.slower = 0  # how much longer it takes at its earliest start than it would later

    def on(self, engine: Engine) -> int:
        """How long that engine is busy with it: a transfer, also the one that must trigger it."""
        if engine is self.engine:
            return self.busy
        return self.trigger if engine is self.by else 0

    def until(self, other: _Job, signal: int) -> int:
        """From its start to that of `other`, which waits for it: on one engine a sum that is added
        to is not waited for.
        """
        if self.engine is Engine.DMA or self.engine is not other.engine:
            return self.length + signal
        return self.hold


class _Cold:
    """The tensor engine at the start: it may begin when the first of its jobs can, and runs at a
    share of its rate for some time from then on (`timing.Warmth`).
    """

    def __init__(self, code: Sequence[_Job], target: Target) -> None:
        warmth = Warmth(target)
        begins = min((job.earliest for job in code if job.engine is Engine.TENSOR), default=0)
        self.until = begins + warmth.up if warmth.up else 0
        self.rate = warmth.rate

    def slower(self, start: int, work: int) -> int:
        """How much longer `work` takes than at the full rate, from `start` on at the earliest."""
        return int(min(max(0, self.until - start), work / self.rate) * (1 - self.rate))


def _load_tables(code: Sequence[_Job], before: Mapping[int, list[_Job]], load: int) -> None:
    """A table is loaded by the first that needs it: known where all others come after that one."""
    first: dict[str, _Job] = {}
    known: set[str] = set()
    after: dict[int, frozenset[str]] = {}  # the tables whose first user comes before
    for job in code:
        after[job.number] = frozenset().union(*(after[one.number] for one in before[job.number]))
        if not job.table:
            continue
        if job.table not in first:
            first[job.table] = job
            known.add(job.table)
            after[job.number] |= {job.table}
        elif job.table not in after[job.number]:
            known.discard(job.table)
    for table in known:
        first[table].hold += load
        first[table].busy += load
        first[table].length += load


def _set_earliest(
    code: Sequence[_Job],
    before: Mapping[int, list[_Job]],
    signal: int,
    cold: _Cold | None = None,
) -> None:
    """When each job can start if engines were without number."""
    for job in code:
        starts = (o.earliest + o.slower + o.until(job, signal) for o in before[job.number])
        job.earliest = max(starts, default=0)
        if cold is not None and job.engine is Engine.TENSOR:
            job.slower = cold.slower(job.earliest, job.hold)


def _set_rest(code: Sequence[_Job], before: Mapping[int, list[_Job]], signal: int) -> None:
    """From each job's start to the end, if engines were without number."""
    for job in reversed(code):
        job.rest = max(job.rest, job.length)
        for one in before[job.number]:
            one.rest = max(one.rest, one.until(job, signal) + job.rest)


def _busy(engine: Engine, jobs: list[_Job], cold: _Cold | None = None) -> int:
    longest = total = 0
    shortest = jobs[0].rest if jobs else 0
    for job in sorted(jobs, key=lambda job: (-job.earliest, job.number)):
        total += job.on(engine)
        shortest = min(shortest, job.rest - job.on(engine))
        slower = cold.slower(job.earliest, total) if cold is not None else 0
        longest = max(longest, job.earliest + total + slower + shortest)
    return longest
