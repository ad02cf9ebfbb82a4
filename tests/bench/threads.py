"""The table of threads: the same runs with one BLAS thread, and with two.

Milliseconds, the least of several runs, all columns in turn: elapsed time, and, after a slash,
processor time, in which a thread that waits counts too. The outputs are compared bit by bit.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf
from time import perf_counter, process_time

from nkic.base.collector import without_collector
from nkic.simulate import RunOptions, simulate, stage
from tests.bench.cases import CASES, Case, drawn
from tests.bench.runs import executable_of

ONE, TWO = RunOptions(), RunOptions(blas_threads=2)
WHICH = ("first", "again")
Seconds = tuple[float, float]  # elapsed, and of processor time


def took(action: Callable[[], object]) -> Seconds:
    with without_collector():
        elapsed, used = perf_counter(), process_time()
        action()
        return perf_counter() - elapsed, process_time() - used


def line(case: Case, rounds: int) -> str:
    inputs, executable = drawn(case), executable_of(case)
    (one,), (two,) = (simulate(executable, inputs, o).outputs.values() for o in (ONE, TWO))
    if one.tobytes() != two.tobytes():
        raise AssertionError(f"{case.title}: a second thread changes the result")
    least: dict[tuple[str, RunOptions], Seconds] = {}
    for _, key in product(range(rounds), product(WHICH, (ONE, TWO))):
        which, options = key
        program = replace(executable) if which == "first" else executable
        now = took(partial(simulate, program, inputs, options))
        stage._cache[:] = [known for known in stage._cache if known.program() is executable]
        best = least.get(key, (inf, inf))
        least[key] = min(now[0], best[0]), min(now[1], best[1])
    cells = [f"{a * 1e3:.1f} / {b * 1e3:.1f}" for a, b in least.values()]
    ratios = [f"{least[which, TWO][0] / least[which, ONE][0]:.2f}" for which in WHICH]
    return f"| {' | '.join([case.title, *cells, *ratios])} |"


def bench_threads(only: str, rounds: int) -> None:
    names = [f"{which}, {count}" for which in WHICH for count in ("one thread", "two threads")]
    names += [f"{which}, two / one" for which in WHICH]
    print("\n## Threads, ms of elapsed time / of processor time\n")
    print(f"| case | {' | '.join(names)} |")
    print(f"|---|{'---:|' * len(names)}")
    for case in CASES:
        if only in case.title:
            print(line(case, rounds), flush=True)
