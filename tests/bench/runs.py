"""The table of runs: whole arrays, the floor, nki-run's simulation, and a peer if one is given.

Milliseconds of processor time: the shortest of several runs, all columns in turn, so that they
meet the same machine. The results are compared with the floor's before anything is printed.
*First*: a process that has not run the executable before. *Again*: one that has (`simulate.stage`).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np

from nkic.artifact.records import Executable
from nkic.base.collector import without_collector
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.simulate import RunOptions, simulate, stage
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.bench.cases import CASES, Case, Floats, Inputs, drawn, same, widened
from tests.bench.peer import Peer

KERNELS = Path(__file__).with_name("kernels.py")
ROUNDS = 7
Action = Callable[[], object]
OURS = ("first", "first, float32", "again", "again, float32")


def executable_of(case: Case) -> Executable:
    """Compile the case's kernel."""
    types = dict(
        parse_arg(f"{name}={dtype}[{', '.join(map(str, shape))}]")
        for name, (dtype, shape) in case.shapes.items()
    )
    source = SourceFile("kernels.py", KERNELS.read_text("utf-8"))
    request = Request(kernel=case.kernel, args=types)
    return compile_source(source, request, lambda name, at: None).executable


def instructions(executable: Executable) -> int:
    return sum(len(stream.items) for stream in executable.streams)


def shortest(
    actions: dict[str, Action], rounds: int = ROUNDS, executable: Executable | None = None
) -> dict[str, float]:
    """Return the least seconds of processor time of each action, interleaved.

    As in `nki-run`, which ends with its run, neither garbage collection nor the freeing of earlier
    runs is counted; what is known of `executable` stays.
    """
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, action in actions.items():
            with without_collector():
                before = process_time()
                made = action()
                taken = process_time() - before
            del made
            stage._cache[:] = [known for known in stage._cache if known.program() is executable]
            found[name] = min(taken, found.get(name, taken))
    return found


def actions_of(
    case: Case, executable: Executable, inputs: Inputs, wanted: Floats
) -> dict[str, Action]:
    """Return the actions to time, after one run of each whose result is compared with the
    floor's.
    """
    given, out = widened(inputs), _out(case)
    floor, single = case.floor(given), RunOptions(accumulate="float32")
    case.whole(given, out)
    same(case, "whole arrays", out, wanted)
    for options in (None, single):
        (found,) = simulate(executable, inputs, options).outputs.values()
        same(case, "nki-run", np.asarray(found, np.float32), wanted)
    for options in (None, single):  # the results of the second run are kept
        simulate(executable, inputs, options)
    return {
        "whole": lambda: case.whole(given, out),
        "floor": lambda: floor(given, out),
        "first": lambda: simulate(replace(executable), inputs),
        "first, float32": lambda: simulate(replace(executable), inputs, single),
        "again": lambda: simulate(executable, inputs),
        "again, float32": lambda: simulate(executable, inputs, single),
    }


def _out(case: Case) -> Floats:
    return np.zeros(case.result, np.float32)


def line(case: Case, peer: Peer | None, rounds: int = ROUNDS) -> str:
    inputs, executable = drawn(case), executable_of(case)
    given, wanted = widened(inputs), _out(case)
    case.floor(given)(given, wanted)
    actions = actions_of(case, executable, inputs, wanted)
    if peer is not None:
        actions["peer"] = peer.action(case, given, wanted)
    took = shortest(actions, rounds, executable)
    cells = [f"{took[name] * 1e3:.1f}" for name in actions]
    ratios = [f"{took[name] / took['floor']:.2f}" for name in OURS]
    return f"| {' | '.join([case.title, f'{instructions(executable):,}', *cells, *ratios])} |"


def bench_runs(peer: Peer | None = None, only: str = "", rounds: int = ROUNDS) -> None:
    names = ["NumPy, whole arrays", "floor", *OURS]
    names += ["peer"] if peer is not None else []
    names += [f"{name} / floor" for name in OURS]
    print("\n## Runs, ms of processor time\n")
    print(f"| case | instructions | {' | '.join(names)} |")
    print(f"|---|{'---:|' * (len(names) + 1)}")
    for case in CASES:
        if only in case.title:
            print(line(case, peer, rounds), flush=True)
