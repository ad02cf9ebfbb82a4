"""Places, the sensitivity of a time to the clock's figures, and evaluations that are kept."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Evaluation, Judge, Results, placed, read_task
from nkic.judge.judge import _kept_hash
from nkic.judge.process import Ended, Process, _Candidate, compile_request
from nkic.judge.reference import Reference
from nkic.judge.task import task_of
from tests.judge.test_cheats import GOOD, REFERENCE, TASK, UNGUARDED, folder

__all__ = ["folder"]  # a fixture
RATE = {"figure": "dma.engine_rate", "share": -0.9, "error": 0.09}
CLOCK = {"figure": "vector.clock_mhz", "share": -0.9, "error": 0.09}


def timed(name: str, time: float, *reasons: Any, **more: Any) -> Evaluation:
    fields: dict[str, Any] = {"runnable": True, "correct": True, "time_ns": time, **more}
    trust = {"reasons": list(reasons)}
    return Evaluation(name, "", "", "", "", compiled=True, **{"trust": trust, **fields})


def places(*evaluations: Evaluation) -> list[tuple[str, str, bool]]:
    found = placed(evaluations)
    return [(p.evaluation.candidate, p.words, p.worth_a_device) for p in found]


def test_errors_that_two_candidates_share_cancel() -> None:
    same = timed("a", 100, RATE), timed("b", 112, RATE), timed("c", 105, RATE)
    assert places(*same) == [("a", "1-2", True), ("c", "1-3", True), ("b", "2-3", False)]
    apart = timed("a", 100, RATE), timed("b", 112, CLOCK)
    assert places(*apart) == [("a", "1-2", True), ("b", "1-2", True)]


def test_timing_again_takes_the_place_of_shares() -> None:
    swing = {"sensitivity": {"dma.engine_rate": [0.0, 0.0, 0.09]}}
    still = timed("a", 100, trust={"reasons": [RATE], **swing})
    other = timed("b", 112, trust={"reasons": []})
    assert [place for _, place, _ in places(still, other)] == ["1", "2"]
    assert [p for _, p, _ in places(timed("a", 100, RATE), other)] == ["1-2", "1-2"]


def test_what_is_not_correct_has_no_place() -> None:
    wrong = timed("wrong", 1, correct=False)
    assert places(wrong, timed("right", 50)) == [("right", "1", True)]
    compiled = timed("only", 5, correct=False, runnable=False)
    assert places(compiled) == [("only", "1", True)]


def test_a_slower_figure_makes_a_slower_program(folder: Path) -> None:
    task = read_task(folder / "task.toml")
    found = Judge(task, time_only=True).evaluate(Candidate.of_text(GOOD))
    assert found.status == "compiled" and not found.cases
    swings = found.trust["sensitivity"]
    more, less, error = swings["dma.engine_rate"]
    assert -error < more < 0 < less < error
    more, less, error = swings["scalar.table_ns"]
    assert -error < less < 0 < more < error
    assert not any(name.startswith(("gpsimd", "tensor")) for name in swings)
    known = Judge(task, time_only=True, sensitivity=False).evaluate(Candidate.of_text(GOOD))
    assert "sensitivity" not in known.trust


@pytest.mark.parametrize(("by", "correct"), [("time", True), ("process", False)])
def test_a_right_candidate_may_have_no_time_left_for_other_figures(
    by: str, correct: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Process, do: str, asked: Any = Process.ask, **request: Any) -> Any:
        if do == "time":
            raise Ended("it is late", by)
        return asked(self, do, **request)

    monkeypatch.setattr(Process, "ask", ask)
    judge = Judge(read_task(folder / "task.toml"), families=False, orders=0)
    found = judge.evaluate(Candidate.of_text(GOOD))
    assert found.correct == correct and "sensitivity" not in found.trust


def test_what_was_evaluated_is_not_evaluated_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Process.ask

    def counted(self: Process, do: str, **request: Any) -> Any:
        asked.append(do)
        return ask(self, do, **request)

    monkeypatch.setattr(Process, "ask", counted)
    task, good = read_task(folder / "task.toml"), Candidate.of_text(GOOD)

    def judged(**options: Any) -> Evaluation:
        asked.clear()
        results, candidate = Results(tmp_path / "results"), options.pop("candidate", good)
        return Judge(options.pop("task", task), results=results, **options).evaluate(candidate)

    quick: dict[str, Any] = {"time_only": True, "sensitivity": False}
    first = judged(**quick)
    assert asked and first.compiled
    again = judged(**quick)
    assert not asked and again.json() == first.json()
    changes: list[dict[str, Any]] = [
        {"families": False},
        {"secret": "mine"},
        {"time_only": False},
        {"orders": 0},
        {"sensitivity": True},
        {"domain": True},
        {"candidate": Candidate.of_text(UNGUARDED)},
        {"candidate": Candidate.of_text(GOOD, "other.py")},
        {"task": task_of(task.toml + b"# other", task.files, folder)},
    ]
    for changed in changes:
        judged(**quick | changed)
        assert asked, changed


def test_what_a_limit_ended_is_not_kept(folder: Path, tmp_path: Path) -> None:
    text = TASK.replace("seconds = 60", "seconds = 0.001")
    task = task_of(text.encode(), {"reference.py": REFERENCE.encode()})
    results = Results(tmp_path / "results")
    judge, good = Judge(task, results=results), Candidate.of_text(GOOD)
    assert "more than the 0.001 s" in judge.evaluate(good).problem
    assert results.get(judge.key(good)) is None


def test_a_task_that_was_changed_has_no_results(folder: Path, tmp_path: Path) -> None:
    changed = dataclasses.replace(read_task(folder / "task.toml"), seconds=3)
    assert Judge(changed).task.seconds == 3
    with pytest.raises(UsageFailed, match="was changed after it was read"):
        Judge(changed, results=Results(tmp_path / "results"))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("not a database, but long enough to be taken for one" * 9)
    with pytest.raises(UsageFailed, match="cannot hold evaluations"):
        Results(tmp_path / "results")
    results = Results(tmp_path / "new")
    for text in ("[1]", "[" * 100_000, "{}", ""):
        results._execute("INSERT OR REPLACE INTO results VALUES ('key', ?)", text)
        assert results.get("key") is None


def test_what_is_damaged_in_a_database_is_not_believed(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    trust: Any = {"sensitivity": {"dma.done_ns": [0.5, -0.1, 0.2]}}
    kept = Evaluation("k.py", "", "t", "", "", trust=trust, time_ns=1.0)
    results.put("key", kept)
    found = results.get("key")
    assert found is not None and found.json() == kept.json()
    (row,) = results._execute("SELECT record FROM results")
    for old, new in (("-0.1", '"x"'), ("-0.1, ", ""), ("1.0", "7.0"), ('"k.py"', "3")):
        assert old in row
        results._execute("UPDATE results SET record = ?", row.replace(old, new))
        assert results.get("key") is None
    schema = {"schema": 1}  # another program's: its hash is right
    for content in ([1], 7, None, {}, schema, {**schema, "cases": 7}, {**schema, "host": 7}):
        record = json.dumps(content)
        results._execute("UPDATE results SET record = ?", f"{_kept_hash(record)} {record}")
        assert results.get("key") is None
    deep = "[" * 100_000
    results._execute("UPDATE results SET record = ?", f"{_kept_hash(deep)} {deep}")
    assert results.get("key") is None
    results._execute("UPDATE results SET record = CAST(x'61B020' AS TEXT)")  # no UTF-8
    assert results.get("key") is None
    for kind in ("CAST(record AS BLOB)", "NULL", "7"):
        results._execute(f"UPDATE results SET record = {kind}")
        assert results.get("key") is None


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    """Whatever its bytes: messages of SQLite hold names that are no UTF-8."""
    path = tmp_path / "results"
    Results(path)
    data = path.read_bytes()
    for word in (b"results", b"CREATE", b"TABLE", b"key", b"PRIMARY"):
        path.write_bytes(data.replace(word, b"\xb0" + word[1:]))
        with suppress(UsageFailed):
            Results(path).get("key")


def test_a_fault_of_nkic_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **options: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("nkic.judge.process.compile", broken)
    task = read_task(folder / "task.toml")
    request = compile_request(task, task.cases[0], "k.py", GOOD, None)
    answer = _Candidate().answer({"do": "compile", **request})
    start = "nkic itself failed, please report it: KeyError in test_places.py, line "
    assert answer["failed"].startswith(start) and answer["failed"].endswith("'lost'")


def test_the_oldest_arrays_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = read_task(folder / "task.toml")
    case, reference = task.cases[0], Reference(task)
    first = reference.inputs(case, 0, None)
    assert reference.inputs(case, 0, None) is first
    size = sum(array.nbytes for array in first.values())
    monkeypatch.setattr("nkic.judge.reference.KEPT_BYTES", 2 * size)
    for seed in (1, 0, 2, 0):  # 2 takes the place of 1, which was used less lately
        found = reference.inputs(case, seed, None)
        assert (found is first) == (seed == 0)
    reference.expected(case, 3, None)
    again = reference.inputs(case, 0, None)
    assert again is not first
    assert all((again[name] == first[name]).all() for name in first)


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE results", "ALTER TABLE results RENAME record TO other", "damaged"],
)
def test_whatever_becomes_of_the_results_is_said(change: str, tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    if change == "damaged":
        (tmp_path / "results").write_bytes(bytes(4096))
    else:
        sqlite3.connect(tmp_path / "results").execute(change)
    with pytest.raises(UsageFailed, match="results` cannot hold evaluations"):
        results.get("key")
