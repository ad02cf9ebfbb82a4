"""Migrations of Beta 1 sources; tests/migrate/test_cases.py has those of later versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nkic.language.enums import OPERATORS
from nkic.migrate.rules import with_operators
from tests.harness.bless import blessing
from tests.migrate.test_cases import Job, each, expected_left, job_of

HERE = Path(__file__).parent


@each("beta1")
def test_the_new_source_is_the_expected_one(path: Path) -> None:
    made = job_of(path).made
    expected = HERE / "expected_beta1" / path.name
    if blessing():
        expected.write_text(made.text, "utf-8")
    assert made.text == expected.read_text("utf-8")


@each("beta1")
def test_what_is_left_is_said_where_it_stands(path: Path) -> None:
    text = path.read_text("utf-8")
    left = [(d.primary.span.line, d.message) for d in job_of(path).made.left if d.primary]
    wanted = expected_left(text)
    assert [line for line, _ in left] == [line for line, _ in wanted], left
    assert all(part in said for (_, said), (_, part) in zip(left, wanted, strict=True)), left


@each("beta1")
def test_a_second_time_changes_nothing(path: Path) -> None:
    once = job_of(path).made.text
    assert Job(once).made.text == once


@each("beta1")
def test_old_and_new_compute_the_same(path: Path) -> None:
    job = job_of(path)
    if job.made.left:
        return
    proof = job.proof()
    assert proof.holds, proof
    assert {one.verdict for one in proof.findings} == {"bits"}


def test_a_branch_that_was_not_reached_computes_the_same() -> None:
    job = Job((HERE / "beta1" / "declared.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]  # nothing calls the function
    job.request = replace(job.request, consts={"causal": True})
    assert {one.verdict for one in job.proof().findings} == {"bits"}


def test_operators_of_numpy_are_passed_as_those_of_nl() -> None:
    job = Job((HERE / "beta1" / "operators.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]  # callers outside the file
    job.request = replace(job.request, consts={"fold": np.min})
    assert {one.verdict for one in job.proof().findings} == {"bits"}
    assert with_operators(job.request).consts == {"fold": OPERATORS["minimum"]}
    kept = {"fold": "minimum", "kind": np.float32, "size": np.int32(3)}
    assert with_operators(replace(job.request, consts=kept)).consts == kept


@pytest.mark.parametrize("way", range(1, 4))
def test_results_like_what_was_read_are_right_when_they_are_reached(way: int) -> None:
    job = Job((HERE / "beta1" / "unreached.py").read_text("utf-8"))
    job.request = replace(job.request, consts={"way": way, "window": 5})
    assert {one.verdict for one in job.proof().findings} == {"bits"}


def test_what_spilled_by_itself_is_compared_with_what_may_spill() -> None:
    job = Job((HERE / "beta1" / "spilled.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]
    found = job.proof().findings
    assert {one.verdict for one in found} == {"bits"}
    assert [one.spills for one in found][:2] == [True, False]  # half of the columns fit in SBUF


@pytest.mark.parametrize("count", [0, 255, 256, 16384, 16639, 65536, 70000])
def test_rows_and_the_part_of_one_are_right_at_their_edges(count: int) -> None:
    job = Job((HERE / "beta1" / "stairs.py").read_text("utf-8"))
    job.request = replace(job.request, consts={"count": count})
    assert {one.verdict for one in job.proof().findings} == {"bits"}
