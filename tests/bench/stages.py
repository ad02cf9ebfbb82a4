"""The table of stages: microseconds per instruction, memory, bytes of the file, by size.

Each size is compiled in a process of its own, so that its peak of memory is its own, with all
that Python and nkic take before. Times are of the processor.

*Unit*: the time of one store of a fresh tuple in a dictionary, measured in the same process. All
stages in units compare machines.
"""

import json
import resource
import sys
from subprocess import run
from time import process_time_ns
from typing import Any

from nkic.base.limits import Limits
from nkic.base.source import SourceFile
from nkic.compiler import pipeline
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.compiler.pipeline import compile_source
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.bench.runs import KERNELS

SIZES = (1_000, 10_000, 100_000)
LARGEST = 1_000_000
STEPS = 10_000_000_000  # of evaluation, which end at a hundredth of that otherwise
REPEATS = {1_000: 5}
STORES, UNIT_ROUNDS = 200_000, 15


def shapes(kernel: str, instructions: int) -> dict[str, str]:
    """Return arguments for about this number of instructions."""
    if kernel == "add":  # 4 for each tile
        rows = max(1, round(instructions * width(instructions) / 2048)) * 128
        return dict.fromkeys("ab", f"float32[{rows}, 512]")
    tall = 8 if instructions == LARGEST else 4  # 3 × 8 + 2 for each 128 × 512
    columns = max(1, round(instructions / 26 / tall)) * 512
    return {"a": f"bfloat16[1024, {128 * tall}]", "b": f"bfloat16[1024, {columns}]"}


def width(instructions: int) -> int:
    """Return the columns of a tile of `add`, so that the largest fits into the 16 GiB that files
    may have.
    """
    return 32 if instructions == LARGEST else 64


def compiled(kernel: str, instructions: int, into: Compiled | None = None) -> Compiled:
    """Compile a kernel of kernels.py for about this number of instructions, and fill `into`."""
    types = dict(parse_arg(f"{n}={text}") for n, text in shapes(kernel, instructions).items())
    source = SourceFile("kernels.py", KERNELS.read_text("utf-8"))
    consts = {"width": width(instructions)} if kernel == "add" else {}
    request = Request(kernel=kernel, args=types, consts=consts)
    options = CompileOptions(limits=Limits(steps=STEPS), keep=frozenset())  # as the command does
    return compile_source(source, request, lambda name, at: None, options, into)


def unit_ns() -> float:
    """Return the least nanoseconds of one store of a fresh tuple under a fresh key.

    The collector is on, as Python has it; without it a store takes about 0.77 of this.
    """
    found = []
    for _ in range(UNIT_ROUNDS):
        stored: dict[int, tuple[int, int]] = {}
        before = process_time_ns()
        for i in range(STORES):
            stored[i] = (i, i)
        found.append(process_time_ns() - before)
    return min(found) / STORES


def measured(kernel: str, instructions: int) -> dict[str, Any]:
    """Measure this process: the least nanoseconds of each stage."""
    stages: dict[str, int] = {}
    for _ in range(REPEATS.get(instructions, 1)):
        done = compiled(kernel, instructions)
        for timing in done.timings:
            stages[timing.stage] = min(timing.ns, stages.get(timing.stage, timing.ns))
    count = sum(len(stream.items) for stream in done.executable.streams)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"count": count, "stages": stages, "mb": peak / 1024, "bytes": len(done.data)}
    return {**found, "unit": unit_ns()}


def in_a_process(kernel: str, instructions: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.stages", kernel, str(instructions)]
    found = run(command, capture_output=True, check=True, text=True)
    return dict(json.loads(found.stdout))


def bench_stages(large: bool = False) -> None:
    """Print a table for an elementwise kernel, and one for a product."""
    print("\n## Stages, µs of processor time per instruction\n")
    sizes = (*SIZES, LARGEST) if large else SIZES
    for kernel, title in (("add", "elementwise"), ("matmul_naive", "matmul")):
        print(table(title, [in_a_process(kernel, n) for n in sizes]), flush=True)


def table(title: str, columns: list[dict[str, Any]]) -> str:
    """Return Markdown: a row for each stage, and for all stages together."""
    rows = [
        (stage, [f"{c['stages'].get(stage, 0) / 1e3 / c['count']:.1f}" for c in columns])
        for stage in columns[0]["stages"]
    ]
    totals = [sum(c["stages"].values()) for c in columns]
    pairs = list(zip(totals, columns, strict=True))
    rows.append(("**all stages**", [f"{t / 1e3 / c['count']:.1f}" for t, c in pairs]))
    rows.append(("unit, µs", [f"{c['unit'] / 1e3:.3f}" for c in columns]))
    rows.append(("all stages, in units", [f"{t / c['unit'] / c['count']:.0f}" for t, c in pairs]))
    rows.append(("seconds", [f"{t / 1e9:.2f}" for t in totals]))
    rows.append(("peak of memory, MB", [f"{c['mb']:,.0f}" for c in columns]))
    rows.append(
        ("file, bytes per instruction", [f"{c['bytes'] / c['count']:.1f}" for c in columns])
    )
    counts = [f"{c['count']:,} instr" for c in columns]
    head = f"| {title} | {' | '.join(counts)} |"
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]
    return "\n".join([head, f"|---|{'---:|' * len(columns)}", *lines, ""])


if __name__ == "__main__":
    # Other processes share the machine.
    pipeline.perf_counter_ns = process_time_ns  # type: ignore[attr-defined]
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
