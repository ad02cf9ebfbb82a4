"""The schemas of tasks and evaluations: what nkic reads and writes is valid, mistakes are not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Judge, read_task
from nkic.judge.schemas import evaluation_schema, task_schema
from tests.judge.test_cheats import GOOD, REFERENCE, TASK
from tests.judge.test_task import CASE, SIZED
from tests.judge.test_task import REFERENCE as SAID

MISTAKES = (
    f"targt = 'trn2'\n{SAID}{CASE}",
    f"target = 'trn9'\n{SAID}{CASE}",
    f"families = ['larg']\n{SAID}{CASE}",
    f"{SAID}{CASE}seeds = []\n",
    SAID + SIZED.replace("[3,", "[0,"),
    f"{SAID}[limits]\nseconds = 0\n{CASE}",
    f"{SAID}[outputs]\nmode = 'near'\n{CASE}",
    f"{SAID}[outputs.x]\nrtoll = 1\n{CASE}",
    f"[reference]\nfunction = 'r.py'\nnpz = 'r.npz'\n{CASE}",
    SAID,
    CASE,
)


def is_valid(text: str) -> bool:
    validator = jsonschema.Draft202012Validator(task_schema())
    return bool(validator.is_valid(tomllib.loads(text)))


@pytest.mark.parametrize("text", MISTAKES)
def test_what_the_reader_refuses_is_not_valid(text: str, tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(text)
    (tmp_path / "r.py").write_text("")
    with pytest.raises(UsageFailed):
        read_task(tmp_path / "task.toml")
    assert not is_valid(text)


def test_what_the_reader_takes_is_valid(tmp_path: Path) -> None:
    assert is_valid(TASK) and is_valid(SAID + CASE) and is_valid(SAID + SIZED)
    assert is_valid(f"{SAID}inputs = 'make'\n{CASE}")
    assert is_valid(f"{SAID}[outputs]\nrtol = 1\n[outputs.x]\nmode = 'l2'\nmax_l2 = 1\n{CASE}")
    jsonschema.Draft202012Validator.check_schema(task_schema())


@pytest.mark.parametrize("time_only", [True, False])
def test_an_evaluation_is_valid(time_only: bool, tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "reference.py").write_text(REFERENCE)
    judge = Judge(read_task(tmp_path / "task.toml"), time_only=time_only)
    schema: Any = evaluation_schema()
    for text in (GOOD, "def k(x"):
        record = json.loads(judge.evaluate(Candidate.of_text(text)).json(host=True))
        jsonschema.validate(record, schema, jsonschema.Draft202012Validator)
        assert set(record) == set(schema["properties"])
    record.pop("trust")
    with pytest.raises(jsonschema.ValidationError, match="'trust' is a required property"):
        jsonschema.validate(record, schema)
