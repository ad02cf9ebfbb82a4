"""Test the driver of mutants: its list follows the code, and a mutated file is still a module."""

import ast
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutate import points
from tests.mutate.drawing import drawn, every, fixed
from tests.mutate.forked import Asked, Judge, Verdict
from tests.mutate.live import Calls
from tests.mutate.rooms import ROOMS, ROOT


def test_every_change_of_the_list_can_be_made() -> None:
    mutants = fixed()
    for mutant in mutants:
        before = (ROOT / mutant.path).read_text("utf-8")
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(before)), mutant.name
        assert all((ROOT / test).is_file() for test in mutant.tests)
    assert len({mutant.text for mutant in mutants}) == len(mutants)


@pytest.mark.parametrize("room", ROOMS)
def test_a_drawn_change_is_one_change(room: str) -> None:
    assert ROOMS[room].modules()
    assert all((ROOT / test).is_file() for test in ROOMS[room].tests)
    for mutant in drawn(3, 0, [room]):
        before = ast.unparse(ast.parse((ROOT / mutant.path).read_text("utf-8"))).splitlines()
        after = ast.unparse(ast.parse(mutant.text)).splitlines()
        assert len(before) == len(after)
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_points_are_counted_as_they_are_made() -> None:
    text = "def f(a, b):\n    if a < b:\n        g(a + 1)\n    return not a or b\n"
    made = points.points(text)
    assert len(made) == points.count(text) == 6
    assert len({point.text for point in made}) == 6


def test_what_only_raises_is_not_changed() -> None:
    text = "def f(a, b):\n    return [*zip(a, b, strict=True)]\n"
    assert points.count(text) == 0
    assert points.count(text.replace("strict", "key")) == 1
    shaped = "def f(a):\n    return a.reshape(2, -1)\n"
    assert [one.text for one in points.points(shaped)] == [shaped.replace("2", "3").rstrip()]


def test_every_change_of_a_module_is_made_once() -> None:
    module = "nkic/compiler/depend.py"
    made = every([module])
    text = (ROOT / module).read_text("utf-8")
    assert {mutant.room for mutant in made} == {"depend"}
    assert len({mutant.text for mutant in made}) == len(made) <= points.count(text)


def test_quick_tests_and_plain_ones_are_asked_in_turn() -> None:
    """Alternate by time: the first test of each list, then the next of the list that has had less
    time.
    """
    seconds = {"quick": 0.25, "quicker": 0.125, "plain": 1.0, "plainer": 2.0}
    entered = {"quick": 80, "quicker": 90, "plain": 4, "plainer": 2}
    tests = {
        name: Asked(True, seconds[name], frozenset(map(str, range(entered[name]))))
        for name in seconds
    }
    judge = Judge(Calls(), Path("map.json"), 60)
    assert judge.order(tests, "m.py") == ["quicker", "plainer", "quick", "plain"]
    judge.kills["m.py plain"] = 100  # it has killed another mutant of that module
    assert judge.order(tests, "m.py")[0] == "plain"
    assert judge.order(tests, "n.py")[0] == "quicker"


@pytest.mark.parametrize(
    ("change", "early"), [("other comparison", False), ("call left out: super", True)]
)
def test_a_change_reaches_functions_that_the_collector_passes_over(
    change: str, early: bool, tmp_path: Path
) -> None:
    """One that they cannot take, since they close over something else, is left for a process."""
    mutants = every(["nkic/simulate/field/following.py"])
    mutant = next(m for m in mutants if change in m.name)
    judge, found = Judge(Calls(), tmp_path / "map.json", 1), list[Verdict]()
    judge.mutants = [(mutant.path, mutant.text)]
    judge.told = lambda index, verdict, taken: found.append(verdict)
    gc.freeze()
    nothing: Any = SimpleNamespace(items=[])
    judge.pytest_runtestloop(nothing)
    assert found == [Verdict("", 0, early)]
