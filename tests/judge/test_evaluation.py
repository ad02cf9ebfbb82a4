"""An evaluation is data: its record makes it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nkic.judge import CaseResult, Evaluation, Flag

OUTPUT = {"name": "out", "passed": False, "failures": 1, "elements": 8}
FOUND = Evaluation(
    candidate="a.py",
    candidate_sha256="1" * 64,
    task="softmax",
    task_sha256="2" * 64,
    nkic="0.1.0",
    compiled=True,
    runnable=True,
    cases=(CaseResult("wide", "seed 0", False, (OUTPUT,), "", 1.5),),
    families=(CaseResult("wide", "large", True, time_ns=2.0),),
    flags=(Flag("narrow", "it computes in bfloat16", cheat=True),),
    time_ns=0.1 + 0.2,
    trust={"error": 0.1},
    instructions={"activation": 1},
    report={"cycles": 3},
    metrics={"hbm_read_bytes": 4},
    verdict=("bound by DMA",),
    seconds=0.25,
)


def test_a_record_makes_the_evaluation_again() -> None:
    again = Evaluation.from_record(json.loads(FOUND.json(host=True)))
    assert again.json() == FOUND.json()
    assert (again.seconds, again.status, again.reason) == (0.25, "cheat", FOUND.reason)
    assert again.cases[0].time_ns == 1.5 and again.flags[0].cheat
    assert Evaluation.from_record(json.loads(FOUND.json())).seconds == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 0}, "the schema is 0"),
        ({"cases": [{"case": "wide"}]}, "missing 2 required"),
        ({"flags": [7]}, "it is no evaluation"),
        ({"flags": 7}, "it is no evaluation"),
        ({"host": []}, "it is no evaluation"),
    ],
)
def test_what_is_no_record(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Evaluation.from_record(json.loads(FOUND.json()) | change)


def test_a_record_without_a_field_is_none() -> None:
    record = json.loads(FOUND.json())
    del record["candidate"]
    with pytest.raises(ValueError, match="missing 1 required"):
        Evaluation.from_record(record)
