"""Simulated time against published times, as Markdown: `make timing`.

docs/measurements.md keeps it.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.machine.codecs import storage
from nkic.machine.operands import Facts
from nkic.machine.targets import TARGETS
from nkic.machine.timing import timing
from nkic.simulate import RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.timing import sweeps
from tests.timing.cases import CASES, LITERAL, TRANSFORMED, Case
from tests.timing.schedules import table
from tests.unit.instances import facts_of
from tests.unit.machine.test_profiles import PROFILES, Seen

HERE = Path(__file__).parent
SCHEDULES = """\
The table compares the samples' simulated times with a lower bound, in microseconds. The bound is
the longest path, or the work of the busiest engine with the work that must come before and after
it; memory limits it only by the
addresses that a kernel names. It includes the tensor engine's slow start, the loading of tables,
the work that one engine has to do before an instruction that waits for several of its results,
and the rendezvous of cores, in program order. The last four rows are loops on the device, in
which each tile has one address: an iteration waits for the last use of the bytes that it
overwrites, and for the work that one engine does between two iterations."""

SWEEPS = """\
These are the project's own kernels that do the same work in several ways
(`tests/timing/tuned.py`). The way that the vendor's guides call faster must be faster in simulated
time (`tests/unit/machine/test_sweeps.py`). Statements of the guides about two instructions, such
as "4x the throughput", are tested instruction by instruction
(`tests/unit/machine/test_statements.py`)."""


class Found(NamedTuple):
    """A prediction and a measurement, in microseconds."""

    measured: float
    predicted: float
    estimate: float = 0.0

    @property
    def error(self) -> float:
        """The error in percent of the measured time."""
        return 100 * (self.predicted - self.measured) / self.measured


def predicted(case: Case) -> Found:
    """Return the kernel's simulated time including the launch.

    A kernel that runs at a smaller shape counts the first iteration of its outermost loop, and
    the time of the second iteration for every further one.
    """
    figures = TARGETS[case.target].figures
    launch = (figures["launch.before_ns"] + figures["launch.after_ns"]) / 1000
    time, estimate = once = ran(case, case.args)
    if case.times > 1:
        two = ran(case, case.twice)
        time, estimate = (a + (case.times - 1) * (b - a) for a, b in zip(once, two, strict=True))
    return Found(case.us, time + launch, estimate + launch)


def ran(case: Case, args: dict[str, str]) -> tuple[float, float]:
    """Return the microseconds of a run, and the compiler's estimate of them."""
    target = TARGETS[case.target]
    source = SourceFile(f"{case.module}.py", (HERE / f"{case.module}.py").read_text("utf-8"))
    parsed = dict(parse_arg(f"{name}={text}") for name, text in args.items())
    request = Request(kernel=case.kernel, args=parsed, target=target)
    options = CompileOptions(spill=True)  # as the device's compiler did
    executable = compile_source(source, request, lambda name, at: None, options).executable
    tensors = [(p.name, executable.tensors[p.tensor]) for p in executable.inputs]
    inputs = {name: np.zeros(t.shape, storage(t.dtype)) for name, t in tensors}
    result = simulate(executable, inputs, RunOptions(check_init=False, values=False))
    return result.time_ns / 1000, float(executable.meta["estimate_ns"]) / 1000


def instruction(seen: Seen) -> Iterable[Found]:
    row, facts = facts_of(seen.name, seen.target, **seen.changes)
    facts = Facts(seen.target, facts.operands, facts.attributes, seen.engine)
    found = timing(row, facts, seen.engine)
    if seen.interval:
        yield Found(seen.interval / 1000, found.hold / 1e6)
    yield Found(seen.duration / 1000, (found.hold + found.latency) / 1e6)


def rank_correlation(found: Sequence[Found]) -> float:
    """Return Spearman's rank correlation; equal times share the mean of their ranks."""
    orders = []
    for name in ("measured", "predicted"):
        times = np.array([getattr(one, name) for one in found])[:, None]
        orders.append((times > times.T).sum(axis=1) + (times >= times.T).sum(axis=1))
    return float(np.corrcoef(orders[0], orders[1])[0, 1])


def summary(found: Sequence[Found]) -> str:
    """Return `n`, median, 90th percentile and worst error, and rank correlation."""
    errors = np.abs([f.error for f in found])
    figures = (np.median(errors), np.percentile(errors, 90), errors.max())
    cells = [str(len(found)), *(f"{value:.1f} %" for value in figures)]
    return " | ".join([*cells, f"{rank_correlation(found):.2f}"])


def print_kernels(print_row: Callable[[str], None]) -> dict[str, list[Found]]:
    """Print a line for each kernel; return the results by how it was compiled, and by sweep."""
    groups: dict[str, list[Found]] = {}
    print_row(
        "\n## Whole kernels\n\nNone of these measurements was used for "
        "fitting. Times are in us and include the launch.\n"
    )
    print_row("| source | version | shape | compiled | measured | predicted | error |")
    print_row("|---|---|---|---|---:|---:|---:|")
    for case in CASES:
        one = predicted(case)
        for name in (case.how, f"sweep {case.sweep}" if case.sweep else ""):
            groups.setdefault(name, []).append(one)
        head = f"{case.source} | {case.version} | {case.shape} | {case.how}"
        print_row(f"| {head} | {one.measured:,.0f} | {one.predicted:,.0f} | {one.error:+.1f} % |")
    return groups


def overview(shape: str, by_software: bool) -> float:
    """Return the microseconds of an example of the DMA overview."""
    path = str(HERE / "overview.py")
    loader = Loader.beside(path)
    said = parse_options(args=[f"a=bfloat16{shape}"], consts=[f"by_software={by_software}"])
    source = loader.main(path)
    made = compile_source(source, request_for(source, said, {}), loader)
    return float(made.executable.meta["estimate_ns"]) / 1000


OVERVIEWS = {  # from the first trigger to the last semaphore; of software also what comes before
    ("[4, 4096]", False): 10.212,
    ("[128, 128]", True): 4.980 + 0.880,
}


def print_overviews(print_row: Callable[[str], None]) -> None:
    """Print a line for each example of the DMA overview."""
    print_row("\nFigures were fitted to these measurements. Times exclude the launch.\n")
    print_row("| source | shape | descriptors | measured | predicted | error |")
    print_row("|---|---|---|---:|---:|---:|")
    for (shape, by_software), us in OVERVIEWS.items():
        one = Found(us, overview(shape, by_software))
        how = "by software" if by_software else "by hardware"
        head = f"DMA overview | {shape} bfloat16 | {how}"
        print_row(f"| {head} | {one.measured:.2f} | {one.predicted:.2f} | {one.error:+.1f} % |")


def print_instructions(print_row: Callable[[str], None]) -> dict[bool, list[Found]]:
    """Print a line for each instruction; return the results by whether figures were fitted to
    it.
    """
    groups: dict[bool, list[Found]] = {True: [], False: []}
    print_row("\n## Instructions\n\nTimes are in ns, from start to start and from start to end.\n")
    print_row("| shown by the profile | fitted | measured | predicted | error |")
    print_row("|---|---|---:|---:|---:|")
    for seen in PROFILES:
        for one in instruction(seen):
            groups[seen.fitted].append(one)
            cells = f"{seen.shown} | {'yes' if seen.fitted else 'no'}"
            values = f"{one.measured * 1000:,.0f} | {one.predicted * 1000:,.0f}"
            print_row(f"| {cells} | {values} | {one.error:+.1f} % |")
    return groups


def main() -> None:
    rows: list[str] = []
    kernels = print_kernels(rows.append)
    print_overviews(rows.append)
    instructions = print_instructions(rows.append)
    print("## Summary\n\n| | n | median | 90th percentile | worst | rank correlation |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| kernels, literal, checked | {summary(kernels[LITERAL])} |")
    print(f"| kernels, transformed, checked | {summary(kernels[TRANSFORMED])} |")
    for name in sorted(name for name in kernels if name.startswith("sweep")):
        print(f"| {name} of the transformed ones | {summary(kernels[name])} |")
    print(f"| instructions, checked | {summary(instructions[False])} |")
    print(f"| instructions, fitted | {summary(instructions[True])} |")
    found = [one for group in (LITERAL, TRANSFORMED) for one in kernels[group]]
    print(f"\nThe compiler's estimate and the run differ by {differ(found):.2f} % at most.")
    print("\n".join(rows))
    print(f"\n## Schedules\n\n{SCHEDULES}\n")
    print("\n".join(table()))
    print(f"\n## Sweeps\n\n{SWEEPS}\n")
    print("\n".join(sweeps.table()))


def differ(found: Sequence[Found]) -> float:
    """Return the worst difference of estimates and runs, in percent."""
    return max(abs(100 * (f.estimate - f.predicted) / f.predicted) for f in found)


if __name__ == "__main__":
    main()
