"""The search, kept results and the budget, with a judge that knows the answer at once."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nkic
from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile
from nkic.judge import Candidate, Evaluation, Results, Task
from nkic.judge.task import task_of
from nkic.judge.tuning import Outcome, Tuned

TOML = b"[reference]\nfunction = 'r.py:f'\n[[case]]\ninputs = { x = 'f32[128,4]' }\n"
KERNEL = "A = 0  # tune: 0..9\nB = 0  # tune: 0..9\nC = 0  # tune: 0..4\n"
Values = dict[str, int]
Knows = Callable[[Values], float]  # returns the time of a point


def time_of(p: Values) -> float:
    """Return the time in us: the best of 500 points is A=7, B=3, C=2, with 100 us."""
    return 100 + 6 * (p["A"] - 7) ** 2 + 4 * (p["B"] - 3) ** 2 + 9 * abs(p["C"] - 2)


class Oracle:
    """A judge that knows the times, and counts what it is asked."""

    asked: list[tuple[Values, bool]]
    wrong: Callable[[Values], bool]
    seconds = 0.0

    def __init__(self, task: Task, *, time_only: bool, results: Results | None, **_: bool) -> None:
        self.task, self.time_only, self.results = task, time_only, results

    def key(self, candidate: Candidate) -> str:
        return sha256(candidate.data).hexdigest() + self.task.sha256 + str(self.time_only)

    def known(self, candidate: Candidate) -> Evaluation | None:
        return self.results.get(self.key(candidate)) if self.results is not None else None

    def evaluate(self, candidate: Candidate) -> Evaluation:
        known = self.known(candidate)
        found = known or self.made(candidate)
        if self.results and not known:
            self.results.put(self.key(candidate), found)
        return found

    def made(self, candidate: Candidate) -> Evaluation:
        text = candidate.data.decode()
        point = {name: int(value) for name, value in re.findall(r"(?m)^(\w) = (\d+)", text)}
        Oracle.asked.append((point, self.time_only))
        Oracle.seconds += 1
        known: Any = {"candidate": "k.py", "candidate_sha256": "", "task": "t", "task_sha256": ""}
        if point["A"] + point["B"] > 14:
            message = f"no room for {point['A']} tiles"
            error = {"level": "error", "code": "NKI0501", "message": message}
            return Evaluation(**known, nkic="", problem=message, diagnostics=[error])
        ran, right = not self.time_only, not self.time_only and not Oracle.wrong(point)
        return Evaluation(
            **known,
            nkic="",
            compiled=True,
            runnable=ran,
            correct=right,
            time_ns=1000 * time_of(point),
            sbuf_bytes=1024 * (1 + point["A"]),
            artifacts={"case": sha256(text.encode()).hexdigest()},
        )


@pytest.fixture(autouse=True)
def oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nkic.judge.tuning.Judge", Oracle)
    Oracle.asked, Oracle.seconds, Oracle.wrong = [], 0.0, lambda point: False


def tuned(kernel: str = KERNEL, **options: Any) -> Tuned:
    task = task_of(TOML, {"r.py": b"def f(x): return x"})
    return nkic.tune(SourceFile("k.py", kernel), task, **options)


def test_a_search_finds_the_best_of_500_in_fewer_trials() -> None:
    pytest.importorskip("optuna")
    found = tuned(trials=120)
    estimated = [point for point, time_only in Oracle.asked if time_only]
    assert len(estimated) == 120 == len({tuple(p.values()) for p in estimated})
    assert found.best is not None and found.best.us <= 105
    assert "380 not tried" in found.counts
    compared = sum(not time_only for _, time_only in Oracle.asked)
    assert 8 <= compared <= 20


@pytest.mark.parametrize("options", [{"trials": 30}, {"trials": 500}])
def test_the_same_command_gives_the_same_result(options: Any) -> None:
    pytest.importorskip("optuna")
    first, second = tuned(**options), tuned(**options)
    assert first.jsonl() == second.jsonl() and first.table == second.table
    assert tuned(**options, jobs=1).svg == first.svg
    if options["trials"] == 30:
        assert tuned(**options, seed=1).jsonl() != first.jsonl()
    else:
        assert tuned(**options, jobs=7).jsonl() == first.jsonl()


@pytest.mark.parametrize(("trials", "after"), [(40, 25), (40, 43), (50, 1), (50, 52)])
def test_a_stopped_tuning_continues_to_the_same_bytes(
    tmp_path: Path, trials: int, after: int
) -> None:
    pytest.importorskip("optuna")
    vary = {"A": "4..9", "B": "0..9"} if trials < 50 else {"A": "5..9", "B": "0..9"}
    whole = tuned(trials=trials, vary=vary)
    asked, kept = len(Oracle.asked), str(tmp_path / "results")
    Oracle.asked, heard = [], []

    def told(text: str) -> None:
        heard.append(text)
        if len(heard) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(trials=trials, vary=vary, results=kept, told=told)
    found = tuned(trials=trials, vary=vary, results=kept)
    assert (found.jsonl(), found.table, found.text) == (whole.jsonl(), whole.table, whole.text)
    assert len(Oracle.asked) == asked  # nothing was judged twice


def test_a_changed_kernel_uses_nothing_that_was_kept(tmp_path: Path) -> None:
    kept = str(tmp_path / "results")
    tuned(vary={"A": "0..9"}, results=kept)
    asked = len(Oracle.asked)
    tuned(vary={"A": "0..9"}, results=kept)
    assert len(Oracle.asked) == asked
    tuned(KERNEL + "# changed\n", vary={"A": "0..9"}, results=kept)
    assert len(Oracle.asked) == 2 * asked


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text("my thesis\n" * 100)
    with pytest.raises(UsageFailed, match="cannot hold evaluations"):
        tuned(trials=500, results=str(path))
    assert path.read_text() == "my thesis\n" * 100


def test_wrong_points_make_room_for_others() -> None:
    Oracle.wrong = lambda point: point["A"] > 4
    found = tuned(trials=500, best=3)
    assert found.best is not None and found.best.point == {"A": "4", "B": "3", "C": "2"}
    assert len(found.correct) >= 3
    Oracle.wrong = lambda point: True
    nothing = tuned(trials=500, best=3)
    assert nothing.best is None and nothing.text == KERNEL
    assert "no point was compared with the reference and is right" in nothing.table


def test_the_front_was_compared() -> None:
    found = tuned(trials=500, best=1)
    assert [o.point["A"] for o in found.front] == [*"76543210"]
    assert [o.us for o in found.front] == [100 + 6 * n * n for n in range(8)]
    assert all(o.correct for o in found.front)


def test_reasons_differ_by_more_than_their_numbers() -> None:
    found = tuned(trials=500)
    assert {kind: len(group) for kind, group in found.failures.items()} == {
        ("refused", "NKI0501", "no room for N tiles"): 50
    }
    assert "50 points  refused  NKI0501  no room for 6 tiles (A=6 B=9 C=0)" in found.table


def test_a_choice_without_effect_is_named() -> None:
    found = tuned(KERNEL + "D = 0\n", vary={"A": "6..7", "B": "3"}, trials=500)
    assert "changes nothing" not in found.table
    assert {o.point["A"] for o in found.outcomes} == {"6", "7"}
    equal = [replace(o.evaluation, artifacts={"case": "p"}) for o in found.outcomes]
    same = Tuned(found.space, [Outcome({"A": str(n), "B": "3"}, e) for n, e in enumerate(equal)])
    assert "`A` changes nothing: the compiled programs are equal" in same.table


def test_nothing_begins_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: Oracle.seconds)
    monkeypatch.setattr("nkic.judge.tuning.time", clock)
    found = tuned(trials=500, budget=100.0)
    assert sum(time_only for _, time_only in Oracle.asked) == 80
    assert len(Oracle.asked) <= 101 and found.over and found.best is not None
    assert "420 not tried" in found.counts and "the time of --budget is over" in found.table
    assert json.loads(found.jsonl().splitlines()[0])["status"] == "correct"
    assert not tuned(trials=500).over
