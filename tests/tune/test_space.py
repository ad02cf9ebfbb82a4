"""The choices in a kernel's text: what may be varied, how a point is written, what is refused."""

import re
from pathlib import Path

import pytest

from nkic.base.diagnostics import NkicError, UsageFailed
from nkic.base.source import SourceFile
from nkic.judge import Task
from nkic.judge.task import task_of
from nkic.judge.tuning import label, space_of, tune

PROJECT = Path(__file__).resolve().parents[2]
TASK = b"[reference]\nfunction = 'r.py:f'\n"
CASE = b"[[case]]\ninputs = { x = 'f32[128,4]' }\n"
KERNEL = """import nki

TILE = 512  # the width  # tune: 64, 128
MODE: str = 'a'


class Config:
    depth = (1 + 1)


def helper(x, step=1):
    return x


@nki.jit
def k(x, step=2, /, wide: int = (3), *, deep=nl.float32):
    TILE = 1
    return x
"""


def task(more: bytes = b"", head: bytes = b"") -> Task:
    return task_of(head + TASK + CASE + more, {"r.py": b"def f(x): return x"})


def text(**vary: str) -> str:
    space = space_of(SourceFile("k.py", KERNEL), task(), vary)
    return space.text([*space.points()][-1])


def test_a_point_replaces_values_where_they_stand_and_nothing_else() -> None:
    assert text(TILE="7") == KERNEL.replace("TILE = 512", "TILE = 7")
    assert text(MODE="'b'") == KERNEL.replace("'a'", "'b'")
    assert text(depth="f(2)") == KERNEL.replace("1 + 1", "f(2)")
    assert text(wide="4") == KERNEL.replace("(3)", "(4)")
    assert text(deep="nl.bfloat16") == KERNEL.replace("nl.float32", "nl.bfloat16")
    several = {"helper.step": "10", "TILE": "1_000", "k.step": "20"}
    assert text(**several) == KERNEL.replace("512", "1_000").replace("step=1", "step=10").replace(
        "step=2", "step=20"
    )


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_are_kept(end: str) -> None:
    kernel = KERNEL.replace("\n", end)
    space = space_of(SourceFile("k.py", kernel), task(), {"deep": "1,2", "TILE": "3"})
    assert space.text({"k.deep": "2", "TILE": "3"}) == kernel.replace("512", "3").replace(
        "nl.float32", "2"
    )


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("128,256", ["128", "256"]),
        ("1..4", ["1", "2", "3", "4"]),
        ("128..1024*2", ["128", "256", "512", "1024"]),
        ("3..100*5, 7", ["3", "15", "75", "7"]),
        ("2..3,9, 2", ["2", "3", "9"]),
        ("nl.float32, f(1, 2), (3, 4)", ["nl.float32", "f(1, 2)", "(3, 4)"]),
        ("'a,b', True,", None),
        ("1.5, 2.", ["1.5", "2."]),
    ],
)
def test_lists_and_ranges(words: str, values: list[str] | None) -> None:
    if values is None:  # a comma at the end is no value
        with pytest.raises(UsageFailed, match="is no list of values"):
            space_of(SourceFile("k.py", KERNEL), task(), {"TILE": words})
        return
    (choice,) = space_of(SourceFile("k.py", KERNEL), task(), {"TILE": words}).choices
    assert [*choice.values] == values and choice.present == "512"


def test_points_come_in_one_order_and_values_of_python_are_words() -> None:
    space = space_of(SourceFile("k.py", KERNEL), task(), {"TILE": [1, 2], "-O": "0..1"})
    assert space.size == 4
    assert [tuple(point.values()) for point in space.points()] == [
        ("1", "0"),
        ("1", "1"),
        ("2", "0"),
        ("2", "1"),
    ]
    assert space.present == {"TILE": "512", "-O": "1"}
    assert space.text({"TILE": "1", "-O": "0"}) == KERNEL.replace("512", "1")


def test_marks_are_the_space_if_nothing_is_varied() -> None:
    (choice,) = space_of(SourceFile("k.py", KERNEL), task(), {}).choices
    assert choice.name == "TILE" and choice.values == ("64", "128")
    marked = KERNEL.replace("step=1)", "step=1,  # tune: 1..2\n)")
    names = [c.name for c in space_of(SourceFile("k.py", marked), task(), {}).choices]
    assert names == ["TILE", "helper.step"]


@pytest.mark.parametrize(
    ("vary", "message", "help"),
    [
        ({"TIEL": "1"}, "`k.py` has no value of the name `TIEL`", "did you mean `TILE`?"),
        ({"step": "1"}, "`step` is helper.step (line 11) and k.step (line 16)", "helper.step=1"),
        ({"TILE": "4..1"}, "the range `4..1` is empty", "1..4"),
        ({"TILE": "1..8*1"}, "the range `1..8*1` is empty", "*2"),
        ({"TILE": ""}, "`` is no list of values", "128,256,512"),
        ({"TILE": "1 2"}, "`1 2` is no list of values", "128,256,512"),
        ({"TILE": "(1,\n2), 3"}, "is no list of values", ""),
        ({"TILE": "*a"}, "`*a` is no list of values", "128,256,512"),
        ({"TILE": "0..99999"}, "more than 10,000 values", ""),
        ({"-O": "3"}, "the levels are 0, 1 and 2", "-O=0..2"),
        ({"TILE": "1", "x": "2"}, "no value of the name `x`", ""),
        ({"Config.depth": "1", "depth": "2"}, "names one choice twice", "at once"),
    ],
)
def test_what_is_refused(vary: dict[str, str], message: str, help: str) -> None:
    with pytest.raises(UsageFailed) as raised:
        space_of(SourceFile("k.py", KERNEL), task(), vary)
    (found,) = raised.value.diagnostics
    assert message in found.message and help in found.help


@pytest.mark.parametrize(
    ("kernel", "message", "line"),
    [
        ("# tune: 1, 2\nA = 1\n", "this mark is beside no named value", 1),
        ("def k(x, a=1, b=2):  # tune: 1, 2\n    return x\n", "which value is marked?", 1),
        ("A = 1\nB = 2  # tune: 1..0\n", "k.py:2:8: B: the range `1..0` is empty", 0),
        ("A = 1\n", "`k.py` marks no choice", 0),
        ("A = 1 +\n", "", 1),
    ],
)
def test_marks_that_are_none(kernel: str, message: str, line: int) -> None:
    with pytest.raises(NkicError) as raised:
        space_of(SourceFile("k.py", kernel), task(), {})
    (found,) = raised.value.diagnostics
    assert message in found.message
    assert (found.primary.span.line if found.primary else 0) == line


def test_a_name_that_is_assigned_twice_is_no_choice() -> None:
    with pytest.raises(UsageFailed) as raised:
        space_of(SourceFile("k.py", "A = 1\nA = 2\n"), task(), {"A": "3"})
    (found,) = raised.value.diagnostics
    assert found.message == "--vary: `A` is A (line 1) and A (line 2)"
    assert found.help == "assign it once"


def test_what_the_task_sets_is_not_varied() -> None:
    source = SourceFile("k.py", KERNEL)
    with pytest.raises(UsageFailed, match=r"the task sets it: consts of case case0"):
        space_of(source, task(b"consts = { wide = 3 }\n"), {"wide": "1"})
    with pytest.raises(UsageFailed, match="-O is varied, but the task sets it"):
        space_of(source, task(head=b"optimise = 2\n"), {"-O": "1"})


def test_a_large_space_needs_optuna(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    with pytest.raises(UsageFailed) as raised:
        tune(SourceFile("k.py", KERNEL), task(), {"TILE": "1..300"})
    (found,) = raised.value.diagnostics
    assert "300 points are more than the 200 trials" in found.message
    assert "pip install optuna" in found.help and "--trials 300" in found.help


def test_the_page_and_the_sample_say_the_same() -> None:
    path = PROJECT / "samples/16_tuning/kernel.py"
    space = space_of(SourceFile("kernel.py", path.read_text("utf-8")), task(), {})
    page = (PROJECT / "docs/tune.md").read_text("utf-8")
    marked = [line for line in space.source.lines if "# tune:" in line]
    assert len(marked) == 3 and all(f"    {line}\n" in page for line in marked)
    shown = re.findall(r"(?m)^    \d\S* +(COLUMNS=\d+ BUFFERS=\d TYPE=\S+) ", page)
    assert len(shown) == 9 and {*shown} <= {label(point) for point in space.points()}
    assert f"{space.size} points: " in page and label(space.present) == shown[-1]
    listed = (PROJECT / "samples/16_tuning/task.toml").read_text("utf-8").splitlines()[1:]
    assert all(line in page for line in listed)
