"""Candidates of published tuning runs, in the order that nkic predicts and that a device measured.

    python -m tests.timing.candidates --kda CHECKOUT [OPERATOR ...]

CHECKOUT is one of the public repository Jerry2423/kda-for-trainium, whose kernels are compiled and
not run: the compiler's estimate is the run's time. `candidates.csv` has the latencies that its
records state. A device's time is `factor` times as long: printed times exceed the peak rates of a
core, in bytes and in products, by up to twice; `reason` says where the factor is another.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import nkic
from tests.timing.__main__ import Found, summary

MEASURED = Path(__file__).with_suffix(".csv")
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


def predicted(path: Path, types: Mapping[str, str]) -> float:
    """Return the estimated time of a kernel in microseconds."""
    compiled = nkic.compile(str(path), name="kernel", inputs=types, limits={"steps": STEPS})
    return float(compiled.executable.meta["estimate_ns"]) / 1000


def candidates(checkout: Path, operator: str) -> Iterator[tuple[str, Found]]:
    """Yield the candidates of an operator by name, and report those that nkic refuses."""
    with MEASURED.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["operator"] == operator]
    for row in rows:
        path = checkout / "workspaces" / operator / "runs" / row["kernel"]
        measured = float(row["reported_us"]) * float(row["factor"])
        try:
            time = predicted(path, TYPES[operator])
        except nkic.CompileError as refused:
            print(f"{path.stem} is left out: {str(refused).splitlines()[0]}", file=sys.stderr)
        else:
            yield path.stem, Found(measured, time, time)


def picked(found: Sequence[Found]) -> str:
    """Return how far the measured times spread, and how much slower than the best the pick is."""
    fastest = min(one.measured for one in found)
    slowest = max(one.measured for one in found)
    pick = min(found, key=lambda one: one.predicted)
    return " | ".join(f"{100 * (us / fastest - 1):.1f} %" for us in (slowest, pick.measured))


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    checkout = Path(arguments[arguments.index("--kda") + 1])
    chosen = [name for name in arguments if name in TYPES] or list(TYPES)
    groups: dict[str, list[Found]] = defaultdict(list)
    print("| operator | candidate | measured | predicted | error |\n|---|---|---:|---:|---:|")
    for operator in chosen:
        for name, one in candidates(checkout, operator):
            groups[operator].append(one)
            times = f"{one.measured:,.1f} | {one.predicted:,.1f}"
            print(f"| {operator} | {name} | {times} | {one.error:+.1f} % |", flush=True)
    print(
        "\n| operator | n | median | 90th percentile | worst | rank correlation | spread "
        "| pick slower by |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    for operator, found in groups.items():
        print(f"| {operator} | {summary(found)} | {picked(found)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
