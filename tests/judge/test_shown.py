"""What an evaluation shows an author who must not know hidden cases and seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from nkic.judge import Candidate, Evaluation, Judge, task_of
from nkic.judge.process import Ended, Process
from tests.judge.test_cheats import CONSTANT, GOOD, REFERENCE, ROUNDED, SHAPED, TASK

# The hidden case takes longer, and so would be the one that is analysed.
WIDER = TASK.replace("[128,32]", "[128,96]").replace('64]" }', '64]" }\nseeds = [0, 7]')
FILES = {"reference.py": REFERENCE.encode()}
LATE, ELSEWHERE = "it takes too long", "it fails, though not on what is shown"
TELLS = 'assert x.shape[1] == 64, "the width is " + str(x.shape[1])'


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(task_of(WIDER.encode(), FILES), secret="mine")


def judged(judge: Judge, text: str) -> Evaluation:
    return judge.evaluate(Candidate.of_text(text))


def test_time_and_analysis_are_those_of_what_is_shown(judge: Judge) -> None:
    known = dataclasses.replace(judge.task, cases=judge.task.cases[:1])
    whole, alone = judged(judge, GOOD), judged(Judge(known), GOOD)
    seen = whole.shown(["wide"])
    assert seen.correct and seen.time_ns == alone.time_ns
    assert seen.time_ns and whole.time_ns and whole.time_ns > 2 * seen.time_ns
    assert (seen.verdict, seen.what_if, seen.report, seen.trust) == (
        *(alone.verdict, alone.what_if, alone.report, alone.trust),
    )
    assert seen.families == whole.families and seen.analysed == "wide"
    assert alone.shown(["wide"]) is alone and Evaluation.from_record(seen.record()) == seen
    text = json.dumps([seen.json(), whole.shown([]).json()])
    assert "narrow" not in text.replace('narrowest\\"', "") and "hidden" not in text
    none = whole.shown([])
    assert not (none.verdict or none.families or none.artifacts) and none.time_ns is None


def test_no_value_of_a_hidden_seed_is_shown(judge: Judge) -> None:
    seen = judged(judge, CONSTANT).shown(["wide"])
    assert [r.inputs for r in seen.cases] == ["seed 0", "seed 7"] and seen.status == "cheat"
    known = dataclasses.replace(judged(judge, GOOD), correct=False, flags=())
    last = dataclasses.replace(known.cases[2], passed=False, problem="at worst 3 instead of 4")
    only = dataclasses.replace(known, cases=(*known.cases[:2], last, *known.cases[3:]))
    assert only.reason == "wide (hidden seed): at worst 3 instead of 4"
    seen = only.shown(["wide"])
    assert (seen.status, seen.reason) == ("wrong", "it is wrong, though not on what is shown")


def test_what_a_kernel_says_of_a_hidden_shape_stays_hidden(judge: Judge) -> None:
    found = judged(judge, GOOD.replace("    t = nl", f"    {TELLS}\n    t = nl"))
    assert "the width is 96" in found.reason and found.status == "refused"
    seen = found.shown(["wide"])
    assert (seen.status, seen.reason) == ("fails", ELSEWHERE)
    assert "the width" not in seen.json() and not seen.diagnostics
    assert judged(judge, SHAPED).shown(["wide"]).reason == "it is right on the known inputs alone"


def test_a_name_in_a_flag_stays_hidden(judge: Judge) -> None:
    named = ROUNDED.replace("nl.copy(nl.load(x), dtype=nl.bfloat16)", "nl.load(x)")
    named = named.replace(
        "    nl.store(out", "    if x.shape[1] > 64:\n        e = E\n    nl.store(out"
    )
    named = named.replace("e = E", "e = nl.copy(nl.copy(e, dtype=nl.bfloat16), dtype=nl.float32)")
    found = judged(judge, named)
    (flag,) = (f for f in found.flags if f.name == "narrow")
    assert flag.case == "narrow" and "bfloat16" in flag.text and found.status == "cheat"
    assert found.shown(["wide"]).reason == "`narrow`, though not on what is shown"
    assert judged(judge, ROUNDED).shown(["wide"]).reason.endswith("narrower than float32")


@pytest.mark.parametrize(
    ("run", "failed_on", "reason"),
    [
        (1, ("wide", "seed 0"), LATE),
        (2, ("wide", "seed 7"), LATE),
        (3, ("wide", "hidden seed"), ELSEWHERE),
        (4, ("narrow", "seed 0"), ELSEWHERE),
        (5, ("narrow", "hidden seed"), ELSEWHERE),
        (6, ("wide", "large"), LATE),
        (7, ("wide", "zeros"), LATE),
    ],
)
def test_a_failure_is_hidden_where_its_inputs_are(
    run: int,
    failed_on: tuple[str, str],
    reason: str,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask, runs = Process.ask, count(1)

    def asked(self: Process, do: str, **request: Any) -> Mapping[str, Any]:
        if do == "run" and next(runs) == run:
            raise Ended(LATE, "time")
        return ask(self, do, **request)

    monkeypatch.setattr(Process, "ask", asked)
    found = judged(judge, GOOD)
    assert (found.reason, found.ended) == (LATE, "time")
    assert (*found.failed_on.values(),) == failed_on
    seen = found.shown(["wide"])
    assert (seen.reason, seen.ended) == (reason, "time" if reason == LATE else "")
    assert Evaluation.from_record(json.loads(found.json())).shown(["wide"]).json() == seen.json()
