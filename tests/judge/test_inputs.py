"""Inputs that a task's own function makes, and what an evaluation leaves out when asked."""

from __future__ import annotations

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Evaluation, Judge, task_of

TASK = """
reference = { function = "r.py:twice", inputs = "make" }
outputs = { mode = "l2", max_l2 = 1e-6 }
families = []
case = [{ inputs = { x = "f32[128,4]", y = "bf16[128,4]" }, consts = { k = 2.0 }, seeds = [3, 5] }]
"""
REFERENCE = """
import numpy as np

def make(seed, k):
    return [np.full((128, 4), seed, np.float32), np.full((128, 4), k)]

def twice(seed, x, y):
    assert (x == seed).all() and (y == 2).all()
    return x * y
"""
KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x, y, k):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.multiply(nl.load(x), 1.0), k))
    return out
"""


def judged(
    task: str = TASK, reference: str = REFERENCE, kernel: str = KERNEL, analyse: bool = True
) -> Evaluation:
    judge = Judge(task_of(task.encode(), {"r.py": reference.encode()}), orders=0, analyse=analyse)
    return judge.evaluate(Candidate.of_text(kernel))


def test_a_function_makes_the_inputs_of_each_seed() -> None:
    found = judged()
    assert found.correct, found.reason
    assert [result.inputs for result in found.cases] == ["seed 3", "seed 5"]
    assert found.cases[0].outputs[0]["l2"] == 0.0
    assert found.verdict and found.report


def test_its_inputs_have_names_or_an_order() -> None:
    named = REFERENCE.replace("return [np", "return dict(y=2 * np.ones((128, 4)), x=np")
    found = judged(reference=named.replace(", np.full((128, 4), k)]", ")"))
    assert found.correct, found.reason


def test_a_wrong_shape_is_the_authors_fault() -> None:
    with pytest.raises(UsageFailed, match=r"make makes no `y` of shape \[128, 4\]"):
        judged(reference=REFERENCE.replace(", np.full((128, 4), k)", ""))
    with pytest.raises(UsageFailed, match="`required_families` needs"):
        judged("required_families = ['large']\n" + TASK.replace("families = []", ""))
    with pytest.raises(UsageFailed, match=r"`r.py` has no function `made`"):
        judged(TASK.replace('"make"', '"made"'))


def test_a_relative_distance_above_the_limit_is_wrong() -> None:
    found = judged(kernel=KERNEL.replace("1.0", "1.0001"))
    assert found.status == "wrong"
    assert found.cases[0].outputs[0]["l2"] == pytest.approx(1e-4, rel=0.01)
    assert judged(TASK.replace("1e-6", "1e-3"), kernel=KERNEL.replace("1.0", "1.0001")).correct


def test_an_output_that_is_skipped_is_not_compared() -> None:
    skips = TASK.replace('"l2", max_l2 = 1e-6', '"skip"')
    found = judged(skips, kernel=KERNEL.replace("1.0", "7.0"))
    assert found.correct and found.cases[0].outputs == ()


def test_an_evaluation_without_analysis_has_the_same_values() -> None:
    found, quick = judged(), judged(analyse=False)
    assert quick.correct and quick.time_ns == found.time_ns
    assert not quick.verdict and not quick.report
