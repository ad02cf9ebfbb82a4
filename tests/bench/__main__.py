"""`make bench`, or `python -m tests.bench [TABLES] [options]`, with some of runs, threads,
stages, commands, parse, instructions and editing.

    --peer CHECKOUT  a checkout of triton-viz, whose interpreter gets a column of its own
    --large          stages at 1,000,000 instructions too
    --case WORDS     only the runs whose title has these words
    --rounds N       how often each run is repeated

Prints Markdown. Ratios compare within one run; docs/benchmarks.md keeps the last results.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import argparse
from pathlib import Path

from nkic.base.source import SourceFile
from nkic.source.parse import parse
from tests.bench.commands import bench_commands
from tests.bench.editing import bench_editing
from tests.bench.instructions import bench_instructions
from tests.bench.peer import Peer
from tests.bench.runs import KERNELS, ROUNDS, bench_runs, shortest
from tests.bench.stages import bench_stages
from tests.bench.threads import bench_threads


def bench_parse() -> None:
    text = KERNELS.read_text("utf-8") * 16
    files = iter([SourceFile(f"{n}.py", f"{text}# {n}\n") for n in range(9)])
    parse(next(files))
    took = shortest({"parse": lambda: parse(next(files))})["parse"]
    lines = text.count("\n")
    print(f"\n## Parse\n\n{lines:,} lines: {lines / took:,.0f} lines/s\n")


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.bench")
    options.add_argument("tables", nargs="*")
    options.add_argument("--peer", type=Path)
    options.add_argument("--large", action="store_true")
    options.add_argument("--case", default="")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    given = options.parse_args()
    peer = Peer(given.peer) if given.peer is not None else None
    tables = {
        "runs": lambda: bench_runs(peer, given.case, given.rounds),
        "threads": lambda: bench_threads(given.case, given.rounds),
        "stages": lambda: bench_stages(given.large),
        "commands": bench_commands,
        "parse": bench_parse,
        "instructions": bench_instructions,
        "editing": bench_editing,
    }
    unknown = [name for name in given.tables if name not in tables]
    if unknown:
        options.error(f"no table {unknown[0]}: {', '.join(tables)}")
    for name in given.tables or tables:
        tables[name]()


if __name__ == "__main__":
    main()
