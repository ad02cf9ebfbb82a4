"""What the figures of the clock make of each checked kernel's time.

    python -m tests.timing.trusted --kda CHECKOUT [OPERATOR ...] >> tests/timing/trusted.csv

adds kernels: "whole" are those of `cases.py`, the others candidates of published tuning runs, of
the public repository Jerry2423/kda-for-trainium. `candidates.csv` has the latencies that its
records state. A device's time is `factor` times as long: printed times exceed the peak rates of a
core, in bytes and in products, by up to twice; `reason` says where the factor is another.

Compiling and timing all kernels takes half an hour, so `trusted.csv` keeps the predictions and, of
each kernel's critical path, the share that each figure makes. All that docs/timing.md says of
candidates comes from there (`tests.timing.left_out`).
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
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
from tests.timing.cases import CASES, Case

KEPT = Path(__file__).with_suffix(".csv")
MEASURED = Path(__file__).with_name("candidates.csv")
TYPES: Mapping[str, Mapping[str, str]] = {
    "adamw": dict.fromkeys(("v1", "v2", "v3", "v4"), "f32[10944,2048]"),
    "silu": {"v1": "f32[128,32,7168]"},
    "bmm_softmax": {"v1": "f32[16,4096,64]", "v2": "f32[16,64,4096]"},
    "rmsnorm_matmul": {"v1": "f32[32,128,1024]", "v2": "f32[8,128,2048]"},
    "lora": {
        "v1": "f32[8,4,128,40,128]",
        "v2": "f32[40,128,12288]",
        "v3": "f32[40,128,128]",
        "v4": "f32[128,12288]",
    },
    "matmul": {"v1": "f32[32,128,40,128]", "v2": "f32[40,128,12288]"},
    "mamba": {
        "delta": "f32[256,7168]",
        "u": "f32[256,7168]",
        "a": "f32[256,16]",
        "b": "f32[16,7168]",
        "c": "f32[16,7168]",
    },
}
STEPS = 4_000_000_000  # of evaluation: some kernels record a million instructions
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


def main(arguments: Sequence[str]) -> None:
    """Print rows of `trusted.csv`."""
    checkout = Path(arguments[arguments.index("--kda") + 1])
    for group in [name for name in arguments if name in TYPES or name == WHOLE]:
        rows = map(whole, CASES) if group == WHOLE else candidates(checkout, group)
        for row in rows:
            shares = " ".join(f"{n}={s:.4f}" for n, s in row.shares.items() if abs(s) >= 0.0005)
            cells = (*row[:3], f"{row.measured:.2f}", f"{row.predicted:.2f}", shares)
            print(",".join(cells), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
