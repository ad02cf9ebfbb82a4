"""The minimum time for which engines are busy, in any order: it shows which engine binds."""

from collections import Counter
from collections.abc import Iterator

from nkic.compiler.bound import Job
from nkic.compiler.semaphores import Timings
from nkic.machine.targets import Engine
from nkic.program.program import Body, Instruction, Loop, Program


def most_busy(program: Program) -> dict[Engine, int]:
    """Return the least picoseconds that each engine is busy, on the core where it is busiest."""
    target = program.target.used_by(len(program.cores))
    timings, found = Timings(target), dict.fromkeys(Engine, 0)
    for body in program.cores:
        busy = Counter[Engine]()
        for one, times in _repeated(body):
            job = Job(one, target, timings)
            for engine in {job.engine, job.by}:
                busy[engine] += times * job.work_on(engine)
        found = {engine: max(most, busy[engine]) for engine, most in found.items()}
    return found


def _repeated(body: Body, times: int = 1) -> Iterator[tuple[Instruction, int]]:
    """Return each instruction and its trip count; one where a register decides."""
    for item in body:
        if isinstance(item, Loop):
            yield from _repeated(item.body, times * (1 if item.trips is None else item.trips))
        else:
            yield item, times
