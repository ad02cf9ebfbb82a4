"""`--domain`: from which size of inputs on a right candidate and its reference part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nkic.api import Artifact
from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Evaluation, Judge, Results, read_task
from nkic.judge.process import Process, end_those_of
from nkic.judge.schemas import evaluation_schema
from tests.judge.test_cheats import GOOD, HEAD, OUT, REFERENCE

TASK = """
families = []
[reference]
function = "reference.py:softmax"
[outputs]
rtol = 1e-3
[[case]]
inputs = { x = "f32[128,32]" }
"""
PLAIN = (
    HEAD
    + OUT
    + """    e = nl.exp(nl.load(x))
    nl.store(out, nl.divide(e, nl.sum(e, axis=1, keepdims=True)))
    return out
"""
)


def judged(folder: Path, text: str) -> Evaluation:
    (folder / "task.toml").write_text(TASK)
    (folder / "reference.py").write_text(REFERENCE)
    judge = Judge(read_task(folder / "task.toml"), domain=True, orders=0, sensitivity=False)
    return judge.evaluate(Candidate.of_text(text))


def test_what_ended_before_the_domain_was_known_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the user had interrupted it then."""

    def ended(judge: Judge, artifact: Artifact, process: Process) -> Any:
        end_those_of({process.thread})
        return process.ask("run")

    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "reference.py").write_text(REFERENCE)
    results, task = Results(str(tmp_path / "results")), read_task(tmp_path / "task.toml")
    judge = Judge(task, domain=True, orders=0, sensitivity=False, results=results)
    monkeypatch.setattr("nkic.judge.judge._domain", ended)
    found = judge.evaluate(Candidate.of_text(PLAIN))
    assert found.correct and [flag.name for flag in found.flags] == ["domain"]
    assert judge.known(Candidate.of_text(PLAIN)) is None


def test_a_dropped_maximum_is_right_within_88(tmp_path: Path) -> None:
    found = judged(tmp_path, PLAIN)
    assert found.correct and found.domain
    first = found.domain[0]
    assert (first["side"], first["place"]) == (0, "candidate.py:9")
    assert 87 < first["holds"] < first["fails"] < 90 and first["other"] > 1e30
    assert first["text"].startswith("limit of the candidate at candidate.py:9: tensor_reduce (add)")
    assert "the reference stays finite" in first["text"]
    again = Evaluation.from_record(json.loads(found.json()))
    assert again.json() == found.json() and again.domain == found.domain
    jsonschema.validate(json.loads(found.json()), evaluation_schema())


def test_a_guarded_candidate_has_no_limit(tmp_path: Path) -> None:
    found = judged(tmp_path, GOOD)
    assert found.correct and found.domain == () and found.proof is not None
    assert found.proof["size"] > 1e30 and found.proof["text"].startswith("proven: the candidate")
    jsonschema.validate(json.loads(found.json()), evaluation_schema())


def test_it_needs_a_reference_for_other_inputs(tmp_path: Path) -> None:
    made: Any = REFERENCE + "\ndef make(seed):\n    return {'x': np.ones((128, 32))}\n"
    (tmp_path / "task.toml").write_text(TASK.replace("[outputs]", 'inputs = "make"\n[outputs]'))
    (tmp_path / "reference.py").write_text(made)
    with pytest.raises(UsageFailed, match="`domain` needs a reference"):
        Judge(read_task(tmp_path / "task.toml"), domain=True)
