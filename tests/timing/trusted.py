"""What the figures of the clock make of each checked kernel's time, and what errors follow.

    python -m tests.timing.trusted
    python -m tests.timing.trusted --kda CHECKOUT [OPERATOR ...] >> tests/timing/trusted.csv

The first prints how many kernels are within what is stated for them, and how many pairs of
candidates can be told apart. The second adds kernels: "whole" are those of `cases.py`.

CHECKOUT is as for `tests.timing.candidates`. Compiling and timing all kernels takes half an hour,
so `trusted.csv` keeps the predictions and, of each kernel's critical path, the share that each
figure makes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nkic
from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.pipeline import compile_source
from nkic.machine.codecs import storage
from nkic.machine.targets import TARGETS
from nkic.report.compare import Timed, distinguishable
from nkic.report.critical import critical_path, exposure, trusted
from nkic.simulate import RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.timing.__main__ import HERE, predicted
from tests.timing.candidates import MEASURED, STEPS, TYPES
from tests.timing.cases import CASES, Case

KEPT = Path(__file__).with_suffix(".csv")
MAX_EVENTS = 2_000_000
WHOLE = "whole"


class Row(NamedTuple):
    """A checked kernel, its times in microseconds, and the shares of figures in its path."""

    group: str
    kernel: str
    target: str
    measured: float
    predicted: float
    shares: dict[str, float]

    @property
    def error(self) -> float:
        """The error relative to the measured time."""
        return abs(self.predicted / self.measured - 1)


def kept() -> list[Row]:
    """Return the rows of `trusted.csv`."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                *(row["group"], row["kernel"], row["target"]),
                *(float(row["measured_us"]), float(row["predicted_us"])),
                {n: float(s) for n, s in (w.split("=") for w in row["shares"].split())},
            )
            for row in csv.DictReader(file)
        ]


def timed(executable: Executable) -> tuple[float, dict[str, float]]:
    """Return the microseconds of a run, and the shares of figures in its critical path."""
    tensors = [(p.name, executable.tensors[p.tensor]) for p in executable.inputs]
    inputs = {name: np.zeros(t.shape, storage(t.dtype)) for name, t in tensors}
    options = RunOptions(check_init=False, values=False, trace=MAX_EVENTS)
    result = simulate(executable, inputs, options)
    trace = result.recorded.trace if result.recorded else None
    if trace is None or not trace.complete:
        return result.time_ns / 1000, {}
    return result.time_ns / 1000, exposure(trace, critical_path(trace))


def candidates(checkout: Path, operator: str) -> Iterator[Row]:
    """Yield the candidates of an operator."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["operator"] == operator]
    for row in rows:
        path = checkout / "workspaces" / operator / "runs" / row["kernel"]
        measured = float(row["reported_us"]) * float(row["factor"])
        try:
            made = nkic.compile(
                str(path), name="kernel", inputs=TYPES[operator], limits={"steps": STEPS}
            )
        except nkic.CompileError as refused:
            print(f"{path.stem} is left out: {str(refused).splitlines()[0]}", file=sys.stderr)
            continue
        executable = made.executable
        yield Row(operator, path.stem, executable.target, measured, *timed(executable))


def name_of(case: Case) -> str:
    """Return the name of a published kernel in `trusted.csv`."""
    return f"{case.kernel} {case.shape}".replace(",", "")


def whole(case: Case) -> Row:
    """Return a published kernel; of a smaller shape that is run, the shares."""
    source = SourceFile(f"{case.module}.py", (HERE / f"{case.module}.py").read_text("utf-8"))
    parsed = dict(parse_arg(f"{name}={text}") for name, text in case.args.items())
    request = Request(kernel=case.kernel, args=parsed, target=TARGETS[case.target])
    made = compile_source(source, request, lambda name, at: None, CompileOptions(spill=True))
    one = predicted(case)
    return Row(
        WHOLE, name_of(case), case.target, one.measured, one.predicted, timed(made.executable)[1]
    )


def run_of(row: Row) -> Timed:
    """Return the run for ranking."""
    reasons = trusted(row.shares, TARGETS[row.target]).reasons
    return Timed(row.kernel, row.predicted * 1000, {reason.figure: reason for reason in reasons})


def pairs(rows: Sequence[Row]) -> tuple[int, list[bool]]:
    """Return the number of pairs of candidates of one operator and, of those that can be told
    apart, whether the device has the same order.
    """
    runs = {id(row): run_of(row) for row in rows if row.group != WHOLE}
    both = [(a, b) for a, b in combinations(rows, 2) if a.group == b.group != WHOLE]
    told = [(a, b) for a, b in both if distinguishable(runs[id(a)], runs[id(b)])]
    return len(both), [(a.predicted < b.predicted) == (a.measured < b.measured) for a, b in told]


def table() -> list[str]:
    """Return a table by group, and the sums."""
    lines = [
        "| kernels | n | median error | stated, median | within | pairs | told apart | of them in "
        "the device's order |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rows = kept()
    for group in [*dict.fromkeys(row.group for row in rows), "all"]:
        chosen = [row for row in rows if group in (row.group, "all")]
        stated = [trusted(r.shares, TARGETS[r.target]).percent / 100 for r in chosen]
        inside = sum(r.error <= s for r, s in zip(chosen, stated, strict=True))
        count, right = pairs(chosen)
        medians = [f"{100 * np.median(v):.1f} %" for v in ([r.error for r in chosen], stated)]
        cells = [group, str(len(chosen)), *medians, str(inside)]
        lines.append(f"| {' | '.join(cells)} | {count} | {len(right)} | {sum(right)} |")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Print the table, or rows of `trusted.csv`."""
    if "--kda" not in arguments:
        print("\n".join(table()))
        return
    checkout = Path(arguments[arguments.index("--kda") + 1])
    for group in [name for name in arguments if name in TYPES or name == WHOLE]:
        rows = map(whole, CASES) if group == WHOLE else candidates(checkout, group)
        for row in rows:
            shares = " ".join(f"{n}={s:.4f}" for n, s in row.shares.items() if abs(s) >= 0.0005)
            cells = (*row[:3], f"{row.measured:.2f}", f"{row.predicted:.2f}", shares)
            print(",".join(cells), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
