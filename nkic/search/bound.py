"""A lower bound of a program's time, whatever the order and the addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Instruction, instructions
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import SEMAPHORE_PS, Timing
from nkic.schedule.order import Timings, engine_of

Job = tuple[int, int, int]  # earliest start, time on the engine, and time from there to the end


def bound(body: Body, graph: DependenceGraph, target: Target) -> int:
    """Picoseconds that `body`, without device loops, takes at least.

    For each engine: of the instructions that cannot start before some moment, all their time on
    it one after the other from then on, and the shortest way from any of them to the end. An
    engine with one instruction gives the longest path. `graph` has no edges of reuse.
    """
    code = list(instructions(body))
    timings = Timings(target)
    times = {one.number: timings.of(one) for one in code}
    earliest = _earliest(code, graph, times)
    rest = _rest(code, graph, times)
    jobs: dict[Engine, list[Job]] = defaultdict(list)
    for one in code:
        engine, time = engine_of(one), times[one.number]
        busy = time.pool if engine is Engine.DMA else time.hold
        jobs[engine].append((earliest[one.number], busy, rest[one.number] - busy))
    paths = (earliest[one.number] + rest[one.number] for one in code)
    return max([_busy(found) for found in jobs.values()] + [max(paths, default=0)], default=0)


def _length(time: Timing) -> int:
    return time.start + time.hold + time.latency


def _earliest(
    code: Sequence[Instruction], graph: DependenceGraph, times: dict[int, Timing]
) -> dict[int, int]:
    """When each instruction can start if engines were without number."""
    earliest: dict[int, int] = {}
    for one in code:
        before = (e.source for e in graph.sources(one.number))
        ends = (earliest[n] + _length(times[n]) + SEMAPHORE_PS for n in before if n in earliest)
        earliest[one.number] = max(ends, default=0)
    return earliest


def _rest(
    code: Sequence[Instruction], graph: DependenceGraph, times: dict[int, Timing]
) -> dict[int, int]:
    """From each instruction's start to the end, if engines were without number."""
    after = dict.fromkeys(times, 0)
    for one in reversed(code):
        after[one.number] += _length(times[one.number])
        for edge in graph.sources(one.number):
            if edge.source in after:
                way = after[one.number] + SEMAPHORE_PS
                after[edge.source] = max(after[edge.source], way)
    return after


def _busy(jobs: list[Job]) -> int:
    longest = total = 0
    shortest = jobs[0][2] if jobs else 0
    for start, busy, rest in sorted(jobs, reverse=True):
        total += busy
        shortest = min(shortest, rest)
        longest = max(longest, start + total + shortest)
    return longest
