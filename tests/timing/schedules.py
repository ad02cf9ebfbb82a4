"""Compare schedules with their lower bounds: the samples, serial and at every level."""

from collections.abc import Callable, Iterator
from pathlib import Path

from nkic.compiler.bound import bound_ns
from nkic.compiler.compiled import DEFAULT, LEVELS, Compiled, CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.machine.targets import Engine
from nkic.program.program import Program, instructions
from samples.run import Case, cases, folders
from tests.timing.busy import most_busy

LOOPED = ("loop_over_columns", "loop_over_products", "loop_that_carries", "loop_over_rows")
LOOPS = str(Path(__file__).parent / "loops.py")
BINDS = 0.8  # of the bound: an engine that is busy for longer binds
HEAD = """\
| sample | instructions | bound | what binds | serial | -O0 | -O1 | -O2 | -O1 over the bound |
|---|---:|---:|---|---:|---:|---:|---:|---:|"""


def compiled(case: Case, options: CompileOptions) -> Compiled:
    """Compile the sample as the command does."""
    loader = Loader.beside(str(case.folder / "kernel.py"))
    source = loader.main(str(case.folder / "kernel.py"))
    args = tuple(f"{name}={text.replace(' ', '')}" for name, text in case.args.items())
    said = parse_options() if case.in_block else parse_options(kernel=case.kernel, args=args)
    return compile_source(source, request_for(source, said, {}), loader, options)


def least(found: Compiled) -> float:
    """Return the lower bound in microseconds."""
    return bound_ns(found.results["lower"], found.results["depend"]) / 1000


def binds(found: Compiled, bottom: float) -> str:
    """Return what determines the bound: the engine that is busy for most of it, or the longest
    path.
    """
    program: Program = found.results["lower"]
    most = most_busy(program)
    engine = max(most, key=lambda one: most[one])
    name = "DMA" if engine is Engine.DMA else engine.value
    return name if most[engine] / 1e6 > BINDS * bottom else "longest path"


def microseconds(found: Compiled) -> float:
    """Return the time of a run, which the compiler notes in the file."""
    return float(found.executable.meta["estimate_ns"]) / 1000


def row(case: Case) -> str:
    return line(case.name, lambda n, serial: compiled(case, CompileOptions(serial, level=n)))


def looped(name: str) -> str:
    """Return a line of the table for a kernel of `loops.py`."""
    loader = Loader.beside(LOOPS)
    source = loader.main(LOOPS)
    request = request_for(source, parse_options(kernel=name), {})
    return line(
        name.replace("_", " "),
        lambda n, serial: compile_source(source, request, loader, CompileOptions(serial, level=n)),
    )


def line(name: str, compile_with: Callable[[int, bool], Compiled]) -> str:
    """Return a line of the table for a kernel compiled at that level, or serially."""
    one = compile_with(DEFAULT.level, False)
    bottom = least(one)
    serial = microseconds(compile_with(DEFAULT.level, True))
    times = [microseconds(compile_with(level, False)) for level in LEVELS]
    count = sum(1 for body in one.results["lower"].cores for _ in instructions(body))
    cells = [f"{time:,.1f}" for time in (serial, *times)]
    head = f"| {name} | {count} | {bottom:,.1f} | {binds(one, bottom)}"
    return f"{head} | {' | '.join(cells)} | {times[1] / bottom:.2f} |"


def table() -> Iterator[str]:
    yield HEAD
    for folder in folders():
        yield from map(row, cases(folder))
    yield from map(looped, LOOPED)
