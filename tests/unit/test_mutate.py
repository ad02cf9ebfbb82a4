"""The driver of mutants: its list must follow the code, what it changes must be a module still."""

from __future__ import annotations

import ast

import pytest

from tests.mutate import points
from tests.mutate.drawing import drawn, fixed
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
