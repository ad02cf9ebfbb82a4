"""A lower bound of a program's time, for any order and any addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.allocate.liveness import lifetimes_in
from nkic.allocate.reuse import reuse_edges
from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import Engine
from nkic.machine.memory import MEMORIES
from nkic.machine.targets import Target
from nkic.machine.timing import semaphore_ps
from nkic.schedule.placed import Timings
from nkic.search.jobs import Job, Sources, lower_bound, sequential_end, sources_of


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
    """Return whether the body contains device loops."""
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
    for twins in zip(*rendezvous, strict=True):  # the same on all of them: check/rendezvous
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
