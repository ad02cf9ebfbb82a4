"""Follow the advice of verdicts on a kernel that is not a matrix product.

A softmax in three passes becomes one in one pass; each step is taken because the preceding verdict
named it.
"""

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from nkic.artifact.records import Executable
from nkic.report.page import Links, Parts
from nkic.report.verdict import MIN_GAIN, Answer, insight
from nkic.simulate import Result
from tests.harness.traced import executable, recorded, run

# Rows are read for the maximum, for the sum and for the quotient, through one buffer, in pieces of
# 16 columns.
PASSES = """\
def softmax(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
    y = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
    top = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for r in range(0, rows, 128):
        LOAD
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=t, axis=1, negate=True)
        LOAD
        nisa.activation(dst=y, op=nl.exp, data=t, bias=top, reduce_res=total, reduce_op=nl.add,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        LOAD
        nisa.activation(dst=y, op=nl.exp, data=t, bias=top)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=y, data=y, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[r : r + 128, :], src=y)
    return out
"""
BY_PIECES = """for c in range(0, columns, 16):
            nisa.dma_copy(dst=t[:, c : c + 16], src=x[r : r + 128, c : c + 16])"""
USE = "nisa.activation(dst=y[:, c : c + 16], op=nl.exp, data=t[:, c : c + 16])"
WHOLE = "nisa.dma_copy(dst=t, src=x[r : r + 128, :])"


def in_pieces() -> str:
    return PASSES.replace("LOAD", BY_PIECES)


def loaded_once(load: str = WHOLE) -> str:
    first, *rest = PASSES.split("        LOAD\n")
    return f"{first}        {load}\n{''.join(rest)}"


def own_buffers() -> str:
    """Give every iteration its own buffers: declarations before the loop move into it."""
    before, loop, after = loaded_once().partition("    for r in range(0, rows, 128):\n")
    lines = before.splitlines(keepends=True)
    moved = [line for line in lines if "buffer=nl.sbuf" in line]
    kept = [line for line in lines if line not in moved]
    return "".join([*kept, loop, *(f"    {line}" for line in moved), after])


class Step(NamedTuple):
    """A kernel, and the advice about it that the next kernel follows."""

    text: str
    follows: str


STEPS = (
    Step(in_pieces(), "load-once:x"),
    Step(loaded_once(BY_PIECES), "fewer-transfers:k.py:15"),
    Step(loaded_once(), "buffers:k.py:9,10,11,12"),
)


def built(text: str) -> Executable:
    return executable(text, x="float32[1024,2048]")


def advice(result: Result) -> list[Answer]:
    """Return the changes that the kernel's author can make, with the largest gain first."""
    kept = recorded(result)
    found = insight(kept.trace, kept.again, 2_000_000).verdict
    return [answer for answer in found.answers if answer.is_advice]


@pytest.fixture(scope="module")
def runs() -> list[Result]:
    return [run(built(step.text)) for step in STEPS] + [run(built(own_buffers()))]


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_the_next_step_is_the_best_advice(runs: list[Result], number: int) -> None:
    best = advice(runs[number])[0]
    assert best.name == STEPS[number].follows
    gained = 1 - runs[number + 1].time_ns / runs[number].time_ns
    assert 0.05 < best.gain < gained + 0.02  # a changed source is scheduled again


def test_one_transfer_takes_the_time_of_one_transfer(runs: list[Result]) -> None:
    found = advice(runs[1])[0]
    assert found.time_ps / 1000 == pytest.approx(runs[2].time_ns, rel=0.05)
    assert "what k.py:15 moves in 128" in found.text


def test_pieces_that_are_used_one_by_one_stay_apart() -> None:
    """A kernel that multiplies each piece when it arrives needs no whole tile."""
    text = loaded_once(f"{BY_PIECES}\n            {USE}")
    assert not [one for one in advice(run(built(text))) if one.name == "fewer-transfers:k.py:15"]


def test_the_steps_together(runs: list[Result]) -> None:
    """Each is faster than the preceding one, and the last is twenty times as fast as the first."""
    times = [result.time_ns for result in runs]
    assert times == sorted(times, reverse=True)
    assert times[0] > 20 * times[-1]
    assert not [answer.name for answer in advice(runs[-1]) if answer.gain > 0.05]


def test_all_compute_the_same(runs: list[Result]) -> None:
    outputs = [result.outputs["output_0"] for result in runs]
    for one in outputs[1:]:
        np.testing.assert_array_equal(one, outputs[0])
    assert outputs[0].sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_advice_within_the_noise_is_silent() -> None:
    """Text, page and JSON leave it out."""
    found = insight(recorded(run(built(own_buffers()))).trace, None)
    gains = {"small": MIN_GAIN - 1e-4, "large": MIN_GAIN, "limit": 0.0}
    answers = [Answer(n, f"try {n}", 0, gain, n != "limit") for n, gain in gains.items()]
    verdict = replace(found.verdict, answers=answers)
    page = Parts(replace(found, verdict=verdict), Links(found, {})).answers()
    assert [answer.name for answer in verdict.told] == ["large", "limit"]
    assert "try large" in "".join(verdict.lines) and "try large" in page
    assert "try small" not in "".join(verdict.lines) and "try small" not in page
    assert "try small" not in json.dumps(verdict.as_json())
