"""A lower bound of a program's time, for any order and any addresses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from nkic.compiler.allocate import lifetimes_in, reuse_edges
from nkic.compiler.semaphores import Timings, engine_of, first_users, queues_of, tensor_of
from nkic.machine.targets import MEMORIES, Engine, Target
from nkic.machine.timing import Tables, Warmth, overlaps_commands, semaphore_ps
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Instruction,
    Loop,
    Program,
    instructions,
)

# ------------------------------------------------------------------------------------------------
# Instructions as jobs of a lower bound: engines and dependences, without order or addresses.

Part = tuple[int, int, int]  # release time, duration, tail


class Job:
    """An instruction: its engine, its earliest start, and its minimum duration."""

    def __init__(
        self, instruction: Instruction, target: Target, timings: Timings, core: int = 0
    ) -> None:
        self.core = core
        self.number = instruction.number
        self.engine = engine_of(instruction)
        queues = queues_of(instruction, target) if self.engine is Engine.DMA else range(1)
        times = [timings.of(instruction, queue) for queue in queues]
        time = min(times, key=lambda t: t.start)
        self.by = time.by
        same = {t.by for t in times} == {time.by}
        self.trigger = time.trigger if same and not overlaps_commands(time.by) else 0
        # the engines that are busy
        self.parts = (self.engine, self.by) if self.trigger else (self.engine,)
        self.hold = time.hold
        self.busy = time.pool if self.engine is Engine.DMA else time.hold
        self.latency = time.latency
        self.length = time.start + time.hold + time.latency
        shared = timings.cost_class(instruction)
        self.table = shared.table
        self.reads = {tensor_of(instruction.operands[i]) for i in shared.reads}
        self.writes = {tensor_of(instruction.operands[i]) for i in shared.writes if shared.is_fixed}
        self.meets = (self.engine, _pipe(instruction)) if instruction.row.is_rendezvous else None
        self.signal = 0  # the delay until all cores know of a rendezvous
        self.loads = False  # whether it loads its activation table in any order
        self.gap = 0  # the delay until its engine can use its result
        self.cold: Cold | None = None
        self.earliest = self.tail = 0
        self.warm_up = 0  # extra time, at its earliest start, of the cold tensor engine

    def work_on(self, engine: Engine) -> int:
        """Return how long the job occupies `engine`; a transfer occupies its trigger, too."""
        if engine is self.engine:
            return self.busy
        return self.trigger if engine is self.by else 0

    def delay_to(self, other: Job, signal: int) -> int:
        """Return the minimum time from this job's start to the start of its dependent `other`.

        On one engine, accumulating into a sum needs no wait. A rendezvous waits for the start of
        the previous one in its stream.
        """
        if self.signal and self.meets == other.meets:
            return other.signal
        if self.engine is Engine.DMA or self.engine is not other.engine:
            return self.length + signal + other.signal
        follows = self.core == other.core and not other.reads.isdisjoint(self.writes)
        gap = self.gap if follows else 0
        return self.hold + gap + other.signal


Sources = dict[Job, list[Job]]
Path = tuple[Job, int, int]  # a job, its release time, and the time from there to the next start


def _pipe(instruction: Instruction) -> object:
    return instruction.attribute(instruction.row.queue) if instruction.row.queue else None


class Cold:
    """The warm-up of the tensor engine.

    It starts with its first job, and from then on runs at a fraction of its rate for some time
    (`timing.Warmth`).
    """

    def __init__(self, code: Sequence[Job], target: Target) -> None:
        warmth = Warmth(target)
        begins = min((job.earliest for job in code if job.engine is Engine.TENSOR), default=0)
        self.end = begins + warmth.up if warmth.up else 0
        self.rate = target.figures["tensor.cold_rate"]

    def warm_up(self, start: int, work: int) -> int:
        """Return the extra time of `work` over the full rate, from `start` on at the earliest."""
        return int(min(max(0, self.end - start), work / self.rate) * (1 - self.rate))


def sources_of(code: Sequence[Job], graph: DependenceGraph) -> Sources:
    """Map each of the jobs to those among them that it waits for."""
    jobs = {job.number: job for job in code}
    sources: Sources = {}
    for job in code:
        numbers = {e.source: 0 for e in graph.sources(job.number) if not e.distance}
        sources[job] = [jobs[number] for number in numbers if number in jobs]
    return sources


def lower_bound(
    cores: Sequence[Sequence[Job]], before: Sources, target: Target, is_start: bool
) -> int:
    """Return a lower bound of these jobs' time on these cores, in picoseconds.

    At the start of a kernel, the tensor engine is cold and the scalar engine holds no table.
    """
    signal, load = semaphore_ps(target), 0
    code = _topological(cores)
    if is_start:
        load = Tables(target).load
        for core_jobs in cores:
            _load_tables(core_jobs, before, load)
            _set_gaps(core_jobs)
    _set_heads(code, before, signal)
    if is_start:
        for core_jobs in cores:
            cold = Cold(core_jobs, target)
            for job in core_jobs:
                job.cold = cold if job.engine is Engine.TENSOR else None
        _set_heads(code, before, signal)
    _set_tails(code, before, signal)
    paths = [job.earliest + job.warm_up + job.tail for job in code]
    busy = [_busy(*pair, load) for core_jobs in cores for pair in _by_engine(core_jobs).items()]
    return max([*busy, *paths], default=0)


def _topological(cores: Sequence[Sequence[Job]]) -> list[Job]:
    """Return the jobs of all cores in topological order: core by core up to each rendezvous."""
    order, iterators = list[Job](), [iter(code) for code in cores]
    while True:
        rendezvous = list[Job]()
        for walk in iterators:
            for job in walk:
                if len(cores) > 1 and job.meets is not None:
                    rendezvous.append(job)
                    break
                order.append(job)
        if not rendezvous:
            return order
        order += rendezvous


def _by_engine(code: Iterable[Job]) -> dict[Engine, list[Job]]:
    jobs_by_engine: dict[Engine, list[Job]] = defaultdict(list)
    for job in code:
        for engine in job.parts:
            jobs_by_engine[engine].append(job)
    return jobs_by_engine


def _load_tables(code: Sequence[Job], before: Sources, load: int) -> None:
    """Add table loads to jobs that certainly load their table.

    The first user of a table loads it; it is known if all other users depend on it.
    """
    local_sources = {
        job.number: [o.number for o in before[job] if o.core == job.core] for job in code
    }
    first = first_users({job.number: job.table for job in code}, local_sources)
    alone = Counter(job.table for job in code if job.number in first)
    for job in code:
        if job.number in first and alone[job.table] == 1:
            job.hold += load
            job.busy += load
            job.length += load
            job.loads = True


def _set_gaps(code: Sequence[Job]) -> None:
    """Set the delay until an instruction's engine can use its result.

    The next instruction waits for the result; a later one has at least one instruction in between.
    """
    for engine, jobs in _by_engine(code).items():
        shortest = min(job.hold for job in jobs)
        for job in jobs:
            if engine is job.engine:
                job.gap = min(job.latency, shortest)


def _set_heads(code: Sequence[Job], before: Sources, signal: int) -> None:
    """Set each job's earliest start, after its sources and after each engine's work on them."""
    for job in code:
        sources = before[job]
        paths = [(o, o.earliest, o.delay_to(job, signal)) for o in sources]
        starts = (begins + o.warm_up + delay for o, begins, delay in paths)
        job.earliest = sequential_end(paths, max(starts, default=0))
        if job.cold is not None:
            job.warm_up = job.cold.warm_up(job.earliest, job.hold)


def _set_tails(code: Sequence[Job], before: Sources, signal: int) -> None:
    """Set the time from each job's start to the end, by paths and by each engine's work."""
    after: dict[Job, list[Path]] = {job: [] for job in code}
    for job in reversed(code):
        paths = after[job]
        ends = (begins + tail for _, begins, tail in paths)
        job.tail = sequential_end(paths, max(ends, default=0))
        job.tail = max(job.tail, job.length)
        for source in before[job]:
            after[source].append((job, source.delay_to(job, signal), job.tail))


def sequential_end(paths: Sequence[Path], minimum: int) -> int:
    """Return the end of these jobs, at least `minimum`: an engine runs one at a time."""
    if len(paths) < 2:
        return minimum
    parts_by_machine: dict[tuple[int, Engine], list[Part]] = defaultdict(list)
    for job, begins, length in paths:
        for engine in job.parts:
            work = job.work_on(engine)
            parts_by_machine[job.core, engine].append((begins, work, length - work))
    for parts in parts_by_machine.values():
        if len(parts) > 1:
            minimum = max(minimum, preemptive_makespan(parts))
    return minimum


def preemptive_makespan(parts: Sequence[Part]) -> int:
    """Return the makespan of `parts` on one machine under preemption, a lower bound of any order.

    This is Jackson's preemptive schedule: among released jobs, the one with the longest tail runs.
    """
    if len(parts) == 2:
        (head, work, tail), (other_head, other_work, other_tail) = parts
        serial = min(head, other_head) + work + other_work + min(tail, other_tail)
        return max(serial, head + work + tail, other_head + other_work + other_tail)
    parts = sorted(parts)
    waiting: list[tuple[int, int]] = []  # (-tail, remaining work)
    now = over = index = 0
    while index < len(parts) or waiting:
        if not waiting:
            now = max(now, parts[index][0])
        while index < len(parts) and parts[index][0] <= now:
            heappush(waiting, (-parts[index][2], parts[index][1]))
            index += 1
        after, work = heappop(waiting)
        step = min(work, parts[index][0] - now) if index < len(parts) else work
        now += step
        if step < work:
            heappush(waiting, (after, work - step))
        else:
            over = max(over, now - after)
    return over


def _busy(engine: Engine, jobs: Sequence[Job], load: int) -> int:
    """Return a lower bound of the time until that engine has done its jobs, plus their tails."""
    longest = preemptive_makespan(
        [(j.earliest, j.work_on(engine), j.tail - j.work_on(engine)) for j in jobs]
    )
    total, shortest = 0, jobs[0].tail
    tables = _Loads(jobs)
    for job in sorted(jobs, key=lambda job: (-job.earliest, job.number)):
        total += job.work_on(engine)
        shortest = min(shortest, job.tail - job.work_on(engine))
        warm_up = job.cold.warm_up(job.earliest, total) if job.cold is not None else 0
        loads = load * tables.after(job) if engine is Engine.SCALAR else 0
        longest = max(longest, job.earliest + total + loads + warm_up + shortest)
    return longest


class _Loads:
    """The minimum number of table loads for a growing set of jobs.

    Every table that they need is loaded, except for one that the engine may already hold because
    other jobs need it too.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.left: Mapping[str, int] = Counter(job.table for job in jobs if job.table)
        self.seen = Counter[str]()
        self.counted = 0  # loads that the jobs' own durations include

    def after(self, job: Job) -> int:
        """Add `job`, and return the number of loads that the jobs' own durations do not include."""
        if job.table:
            self.seen[job.table] += 1
            self.counted += job.loads
        is_held = any(count < self.left[table] for table, count in self.seen.items())
        return len(self.seen) - is_held - self.counted


# --------------------------------------------------------------------------------------------------


def bound_ns(program: Program, graphs: Sequence[DependenceGraph]) -> float:
    """Return a lower bound of the cores' time in nanoseconds; `graphs` as for `bound`."""
    target = program.target.used_by(len(program.cores))
    graphs = [_with_fixed_reuse(b, g, target) for b, g in zip(program.cores, graphs, strict=True)]
    if len(program.cores) > 1 and not any(map(has_loops, program.cores)):
        timings = Timings(target)
        codes = [
            [Job(instruction, target, timings, core) for instruction in instructions(body)]
            for core, body in enumerate(program.cores)
        ]
        return _several_cores(codes, graphs, target) / 1000
    pairs = zip(program.cores, graphs, strict=True)
    return max((bound(body, graph, target) for body, graph in pairs), default=0) / 1000


def _with_fixed_reuse(body: Body, graph: DependenceGraph, target: Target) -> DependenceGraph:
    """Add the reuse edges between tensors at addresses that the kernel chose.

    nkic keeps such tensors in program order.
    """
    operands = (operand for instruction in instructions(body) for operand in instruction.operands)
    if all(o.tensor.fixed is None for o in operands if isinstance(o, AccessPattern)):
        return graph
    for touched in lifetimes_in(body, target, MEMORIES):
        lives = [life for life in touched if life.tensor.fixed is not None]
        fixed = {
            life.tensor.number: address
            for life in lives
            if (address := life.tensor.fixed) is not None
        }
        graph = graph.plus(reuse_edges(lives, fixed, graph)) if lives else graph
    return graph


def has_loops(body: Body) -> bool:
    return any(isinstance(item, Loop) for item in body)


def bound(body: Body, graph: DependenceGraph, target: Target) -> int:
    """Return a lower bound of the time of `body` in picoseconds.

    For each engine, this is the makespan of its instructions as jobs with release times and tails,
    under preemption; the same holds for the sources, and for the dependents, of any one
    instruction. An engine with a single instruction gives the critical path. `graph` has no reuse
    edges that nkic chose. For device loops see `_with_loops`; a loop whose bound is in a register
    counts as one iteration, as in an estimate.
    """
    timings = Timings(target)
    if has_loops(body):
        return _with_loops(body, graph, target, timings)
    code = [Job(instruction, target, timings) for instruction in instructions(body)]
    return lower_bound([code], sources_of(code, graph), target, is_start=True)


def _several_cores(
    cores: Sequence[Sequence[Job]], graphs: Sequence[DependenceGraph], target: Target
) -> int:
    """Return the lower bound of several cores.

    A rendezvous waits for its sources on every core, and the rendezvous of one stream come in
    program order.
    """
    before: Sources = {}
    for code, graph in zip(cores, graphs, strict=True):
        before |= sources_of(code, graph)
    rendezvous = [[job for job in code if job.meets is not None] for code in cores]
    last: dict[object, tuple[Job, ...]] = {}
    for twins in zip(*rendezvous, strict=True):  # the same on all of them: check_rendezvous
        sources = [source for twin in twins for source in before[twin]]
        for twin in twins:
            twin.signal = semaphore_ps(target)
            before[twin] = [*sources, *last.get(twin.meets, ())]
        last[twins[0].meets] = twins
    return lower_bound(cores, before, target, is_start=True)


def _with_loops(body: Body, graph: DependenceGraph, target: Target, timings: Timings) -> int:
    """Return the lower bound of a body with device loops.

    It accounts for the busiest engine over all iterations, and for loop-carried cycles.
    """
    busy: Counter[Engine] = Counter()
    longest = 0
    for loop in _loop_bodies(body):
        code = [Job(instruction, target, timings) for instruction in loop.code]
        for job in code:
            for engine in {job.engine, job.by}:
                busy[engine] += loop.times * job.work_on(engine)
        if loop.times:
            interval = _interval(code, graph, semaphore_ps(target)) if loop.iterations > 1 else 0
            iteration = lower_bound([code], sources_of(code, graph), target, is_start=False)
            longest = max(longest, iteration + (loop.iterations - 1) * interval)
    return max(longest, *busy.values(), 0)


class _LoopBody(NamedTuple):
    """The instructions directly in a loop, not in an inner one.

    `iterations` is the trip count per entry, `times` the total number of iterations.
    """

    code: list[Instruction]
    iterations: int
    times: int


def _loop_bodies(body: Body, iterations: int = 1, times: int = 1) -> Iterator[_LoopBody]:
    yield _LoopBody([item for item in body if isinstance(item, Instruction)], iterations, times)
    for item in body:
        if isinstance(item, Loop):
            inside = 1 if item.trips is None else item.trips
            yield from _loop_bodies(item.body, inside, times * inside)


def _interval(code: Sequence[Job], graph: DependenceGraph, signal: int) -> int:
    """Return a lower bound of the interval between the starts of consecutive iterations.

    For every instruction, it considers the paths to its instance in the next iteration: the longest
    one, and the work of each engine on them.
    """
    jobs = {job.number: job for job in code}
    nodes = [(job, iteration) for iteration in (0, 1) for job in code]
    sources: dict[_Node, list[_Node]] = {}
    for job, iteration in nodes:
        edges = [
            e for e in graph.sources(job.number) if e.source in jobs and e.distance <= iteration
        ]
        sources[job, iteration] = [(jobs[e.source], iteration - e.distance) for e in edges]
    after: dict[_Node, list[_Node]] = {node: [] for node in nodes}
    for node in nodes:
        for source in sources[node]:
            after[source].append(node)
    return max((_recurrence(job, nodes, sources, after, signal) for job in code), default=0)


_Node = tuple[Job, int]  # an instruction in one of two iterations


def _recurrence(
    first: Job,
    nodes: Sequence[_Node],
    sources: Mapping[_Node, Sequence[_Node]],
    after: Mapping[_Node, Sequence[_Node]],
    signal: int,
) -> int:
    """Return a lower bound of the time between the starts of `first` in two iterations."""
    heads, tails = {(first, 0): 0}, {(first, 1): 0}
    for node in nodes:
        paths = [heads[s] + s[0].delay_to(node[0], signal) for s in sources[node] if s in heads]
        if paths:
            heads[node] = max(paths)
    for node in reversed(nodes):
        paths = [node[0].delay_to(a[0], signal) + tails[a] for a in after[node] if a in tails]
        if paths:
            tails[node] = max(paths)
    between = [n for n in heads if n in tails and n != (first, 1)]
    return sequential_end([(n[0], heads[n], tails[n]) for n in between], heads.get((first, 1), 0))
