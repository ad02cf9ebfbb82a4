"""Follow the advice of verdicts alone, from kernels as a newcomer writes them to good ones.

Each step is what the verdict on the kernel before it says first, and gains most of what it
promises.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nkic
from nkic.report.verdict import Verdict, insight
from nkic.simulate import Result
from tests.advice.ladders import (
    BLOCKED,
    GATING_STEPS,
    GOOD_GATING,
    GOOD_NORM,
    NORM_STEPS,
    Step,
)
from tests.harness.traced import SAMPLES, executable, recorded, run

NEAR = 1.3  # times the time of a good kernel
KEPT = 0.7  # of a promised gain
NORM_ARGS = {"x": "float32[1024,2048]", "w": "float32[2048]"}
GATING_ARGS = {"x": "bfloat16[1024,1024]", "w": "bfloat16[1024,64]"}
Ladder = tuple[tuple[Step, ...], str, dict[str, str]]
LADDERS: dict[str, Ladder] = {
    "norm": (NORM_STEPS, GOOD_NORM, NORM_ARGS),
    "gating": (GATING_STEPS, GOOD_GATING, GATING_ARGS),
}


@cache
def ran(name: str, number: int) -> Result:
    """Return the run of a step; -1 is the good kernel."""
    steps, good, args = LADDERS[name]
    return run(executable(good if number < 0 else steps[number].text, **args))


def verdict(result: Result) -> Verdict:
    kept = recorded(result)
    return insight(kept.trace, kept.again).verdict


STEPS = [(name, i) for name, (steps, _, _) in LADDERS.items() for i in range(len(steps) - 1)]


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_each_step_is_the_first_advice(name: str, number: int) -> None:
    steps, _, _ = LADDERS[name]
    before, after = ran(name, number), ran(name, number + 1)
    first = verdict(before).advice[0]
    assert first.name.startswith(steps[number].follows)
    assert 1 - after.time_ns / before.time_ns > KEPT * first.gain


@pytest.mark.parametrize("name", LADDERS)
def test_the_last_step_is_near_a_good_kernel(name: str) -> None:
    steps, _, _ = LADDERS[name]
    last, good = ran(name, len(steps) - 1), ran(name, -1)
    assert last.time_ns < NEAR * good.time_ns
    assert last.time_ns < ran(name, 0).time_ns / 1.7
    found = [r.outputs["output_0"].astype(np.float64) for r in (last, ran(name, 0), good)]
    np.testing.assert_allclose(found[0], found[2], 1e-4, 1e-5)
    np.testing.assert_allclose(found[1], found[2], 0.02, 1e-4)


@pytest.mark.slow
def test_a_product_that_does_not_fit_is_blocked() -> None:
    """From the sample's tiled kernel at 4096 to within 1.3 times the best sample's time."""
    side = dict.fromkeys(("lhsT", "rhs"), "bfloat16[4096,4096]")
    path = str(SAMPLES / "06_matmul" / "kernel.py")
    times = {}
    for kernel in ("matmul_tiled", "matmul_blocked_free", "matmul_fully_blocked"):
        program = nkic.compile(path, name=kernel, inputs=side).executable
        times[kernel] = run(program, values=False)
    first = verdict(times["matmul_tiled"]).advice[0]
    assert first.name == "block:m*4,n*2" and first.estimated
    blocked = run(executable(BLOCKED, **side), values=False)
    gained = 1 - blocked.time_ns / times["matmul_tiled"].time_ns
    assert gained > KEPT * first.gain > 0.5
    best = min(result.time_ns for result in times.values())
    assert blocked.time_ns < NEAR * best


def test_a_product_is_blocked_if_memory_is_short() -> None:
    """The same for 2048 x 512, as if SBUF were too small for the operands; with room, they are
    kept.
    """
    side = dict.fromkeys(("lhsT", "rhs"), "bfloat16[512,2048]")
    path = str(SAMPLES / "06_matmul" / "kernel.py")
    tiled = run(nkic.compile(path, name="matmul_tiled", inputs=side).executable)
    trace = recorded(tiled).trace
    assert not [a for a in verdict(tiled).advice if a.name.startswith("block:")]
    short = replace(trace, target=replace(trace.target, sbuf_usable=20 << 10))
    first = insight(short, recorded(tiled).again).verdict.advice[0]
    assert first.name == "block:m*4,n*2" and "`for m in range(0, 2048, 512): " in first.text
    blocked = run(executable(BLOCKED, **side))
    gained = 1 - blocked.time_ns / tiled.time_ns
    assert gained > KEPT * first.gain > 0.3
    np.testing.assert_array_equal(blocked.outputs["output_0"], tiled.outputs["output_0"])
