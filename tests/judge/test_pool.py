"""Candidates are taken as they are needed, and results come in their order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from nkic.judge import Candidate, Judge, pool, process, task_of
from nkic.judge.pool import Pool, in_order
from nkic.judge.reference import Reference
from tests.harness.commands import ROOT
from tests.judge.test_cheats import GOOD, RACING, REFERENCE, TASK


class Place(Pool):
    """Holds `held` until an item after it is submitted, and finishes others at once."""

    def __init__(self, held: dict[int, int], width: int, depth: int | None = None) -> None:
        self.until = {after: item for item, after in held.items()}
        self.futures: dict[int, Future[Any]] = {}
        self.taken, self.most = 0, 0
        self._width, self._depth = width, depth or width

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    @property
    def width(self) -> int:
        return self._width

    @property
    def depth(self) -> int:
        return self._depth

    def items(self, count: int) -> Iterator[Any]:
        for number in range(count):
            self.taken += 1
            yield None, number

    def submit(self, judge: Any, candidate: Any) -> Future[Any]:
        item = candidate
        future = self.futures[item] = Future()
        self.most = max(self.most, sum(not f.done() for f in self.futures.values()))
        if item not in self.until.values():
            future.set_result(item * 10)
        if item in self.until:
            self.futures[self.until[item]].set_result(self.until[item] * 10)
        return future


def test_results_come_as_they_are_done_and_in_order_if_asked() -> None:
    place = Place({0: 3, 2: 4}, 3)
    found: Iterator[Any] = place.as_they_come(place.items(6))
    assert [*found] == [(1, 10), (0, 0), (3, 30), (2, 20), (4, 40), (5, 50)]
    place = Place({0: 3, 2: 4}, 3)
    found = in_order(place.as_they_come(place.items(6)))
    assert [*found] == [0, 10, 20, 30, 40, 50]


def test_few_are_taken_and_fewer_run() -> None:
    place = Place({0: 10, 1: 11, 2: 12}, 4)
    found: Iterator[Any] = place.as_they_come(place.items(100_000))
    assert next(found) == (3, 30) and place.taken == 4
    assert [number for number, _ in (next(found) for _ in range(6))] == [4, 5, 6, 7, 8, 9]
    assert place.taken == 10 and place.most == 4


def test_none_is_taken_far_ahead_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "AHEAD", 8)
    place = Place({0: 99}, 4)
    found: Iterator[Any] = place.as_they_come(place.items(50))
    assert [next(found)[0] for _ in range(8)] == [1, 2, 3, 4, 5, 6, 7, 8]
    place.futures[0].set_result(0)
    assert next(found) == (0, 0) and place.taken == 9
    assert next(found) == (9, 90)


def test_what_waits_is_given_up_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items 0 and 3 have begun then, and end later."""

    def items() -> Iterator[Any]:
        yield from place.items(7)
        for each in (0, 3):
            place.futures[each].set_running_or_notify_cancel()
        now[0] = 1.0
        yield None, 7

    now = [0.0]
    place = Place({n: 90 + n for n in range(7)}, 2, 8)
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: now[0]))
    found: Iterator[Any] = place.as_they_come(items(), until=1.0)
    assert next(found) == (7, 70)
    for each in (0, 3):
        place.futures[each].set_result(each)
    assert [*found] == [(0, 0), (3, 3)]
    given_up = [each for each, future in place.futures.items() if future.cancelled()]
    assert given_up == [1, 2, 4, 5, 6]


def test_an_error_ends_it_and_gives_up_the_rest() -> None:
    class Failing(Place):
        def submit(self, judge: Any, candidate: Any) -> Future[Any]:
            future = super().submit(judge, candidate)
            if candidate == 1:
                future.set_exception(ValueError("no reference"))
            return future

    place = Failing({n: 90 + n for n in range(9)}, 3)
    with pytest.raises(ValueError, match="no reference"):
        next(place.as_they_come(place.items(9)))
    assert [future.cancelled() for future in place.futures.values()] == [True, False, True]


def test_the_reference_takes_none_of_a_candidates_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*asked: Any, expected: Any = Reference.expected) -> Any:
        now[0] += 1000.0
        return expected(*asked)

    now = [0.0]
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Reference, "expected", late)
    judge = Judge(task_of(TASK.encode(), {"reference.py": REFERENCE.encode()}), families=False)
    assert judge.evaluate(Candidate.of_text(GOOD)).correct


SCRIPT = """
import pickle
import sys
import threading
import nkic

class Own:
    pass

def go_on():
    while not ended:
        pickle.dumps(Own())  # needs this script in `sys.modules`

ended = []
sys.setswitchinterval(1e-4)
threading.Thread(target=go_on).start()
print(nkic.evaluate(sys.argv[2], sys.argv[1], families=False).correct)
ended.append(1)
"""


def test_an_error_does_not_wait_for_a_candidate(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    judge = Judge(task_of(TASK.encode(), None, tmp_path))
    endless = GOOD.replace("    out =", "    while nl: pass\n    out =", 1)

    with pytest.raises(KeyboardInterrupt), pool.LocalPool(2) as place:
        futures = [place.submit(judge, Candidate.of_text(endless)) for _ in range(3)]
        until(lambda: len(process._live) == 2, 30)
        raise KeyboardInterrupt
    assert [future.done() for future in futures] == [True] * 3
    reasons = {future.result().reason for future in futures if not future.cancelled()}
    assert reasons and not any("60 s" in reason for reason in reasons), reasons


def test_a_script_needs_no_guard_against_its_own_processes(tmp_path: Path) -> None:
    line = _script(tmp_path, "good.py", GOOD)
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


PRELOADED = """
import nkic.judge
from nkic.base.worker import FORKED, OURS

text = "import os, sys; os._exit(7 if 'nkic.api.preloaded' in sys.modules else 8)"
process = FORKED.Process(target=exec, args=(text,), name=OURS)
process.start()
process.join()
print(process.exitcode)
"""


def test_a_process_begins_with_full_tables() -> None:
    """In a Python of its own: the tests have a list of what to load before."""
    line = [sys.executable, "-c", PRELOADED]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("7\n", "")


def test_a_signal_to_all_processes_of_a_service_ends_no_candidate() -> None:
    """A service's manager sends it; the judge decides what becomes of the candidates."""
    task = task_of(TASK.encode(), {"reference.py": REFERENCE.encode()})
    with process.Process(60, 1 << 30) as asked:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(asked._process.pid, number)
        request = process.compile_request(task, task.cases[0], "k.py", GOOD, None)
        assert "failed" not in asked.ask("compile", **request)


@pytest.mark.slow  # starts a judge of its own, and waits for it
def test_a_candidate_ends_with_the_judge_that_was_killed(tmp_path: Path) -> None:
    line = _script(tmp_path, "endless.py", RACING)
    judge = subprocess.Popen(line, cwd=tmp_path)
    try:
        grandchildren = until(lambda: _children(_children([judge.pid])), 40)
    finally:
        judge.kill()
        judge.wait()
    assert until(lambda: not any(map(psutil.pid_exists, grandchildren)), 10)


def _script(folder: Path, name: str, text: str) -> list[str]:
    """Return a command that runs a script which judges a candidate."""
    files = {"task.toml": TASK, "reference.py": REFERENCE, "judge.py": SCRIPT, name: text}
    for each, content in files.items():
        (folder / each).write_text(content)
    return [sys.executable, "judge.py", "task.toml", name]


def _children(pids: Sequence[int]) -> list[int]:
    return [child.pid for pid in pids for child in psutil.Process(pid).children()]


def until(true: Callable[[], Any], seconds: float) -> Any:
    """Return what is true, as soon as it is, or what is not after these seconds."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


class Changing(list[Candidate]):
    """Candidates that are others when they are asked for again, as files may be."""

    def __getitem__(self, number: Any) -> Any:
        return Candidate.of_text(f"{GOOD}# changed\n", super().__getitem__(number).name)


def test_the_best_are_run_as_they_were_compiled() -> None:
    judge = Judge(task_of(TASK.encode(), {"reference.py": REFERENCE.encode()}), families=False)
    one = Candidate.of_text(GOOD)
    (_, compiled), (_, correct) = judge.evaluate_best([one], 1)
    assert (compiled.status, correct.status) == ("compiled", "correct")
    (_, compiled), (_, changed) = judge.evaluate_best(Changing([one]), 1)
    assert compiled.status == "compiled" and not changed.correct
    assert changed.problem == "its file changed after it was compiled"
