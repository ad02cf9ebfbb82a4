"""The course: what its grading command says of good, unfinished, wrong and slow kernels."""

import json
import tomllib
from pathlib import Path

import pytest

from course import grade
from nkic.judge import Candidate, Evaluation, Judge, read_task

SOLUTIONS = Path(__file__).with_name("authors") / "course"
EXERCISES = sorted(path.parent.name for path in grade.COURSE.glob("*/task.toml"))
FAST = {"1_vector_add", "5_softmax"}
# Each takes a second or two, mostly to start processes.
EACH = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in EXERCISES]


def solution(exercise: str) -> Path:
    return SOLUTIONS / f"{exercise.partition('_')[2]}.py"


def graded(exercise: str, text: str, folder: Path) -> grade.Grade:
    path = folder / "mine.py"
    path.write_text(text)
    return grade.grade(grade.COURSE / exercise, str(path))


def points(found: grade.Grade) -> list[int]:
    return [part.points for part in found.parts]


def test_there_are_six() -> None:
    assert [name.partition("_")[2] for name in EXERCISES] == [
        *("vector_add", "transpose", "matmul", "convolution", "softmax", "attention")
    ]
    times = tomllib.loads((grade.COURSE / "times.toml").read_text("utf-8"))
    assert sorted(times) == EXERCISES
    page = (grade.COURSE / "README.md").read_text("utf-8")
    for name in EXERCISES:
        assert f"[{name}]({name}/README.md)" in page


@pytest.mark.parametrize("exercise", EACH)
def test_the_reference_gets_full_points_at_the_stated_time(exercise: str) -> None:
    found = grade.grade(grade.COURSE / exercise, str(solution(exercise)))
    assert (points(found), found.more) == ([4, 3, 3], [])
    took = found.parts[2].why[0].partition(" us; ")[0]
    assert float(took) == pytest.approx(grade.TIMES[exercise], rel=0.005), "write it to times.toml"


@pytest.mark.parametrize("exercise", EACH)
def test_the_starting_file_gets_none_and_a_next_step(exercise: str) -> None:
    found = grade.grade(grade.COURSE / exercise, f"course/{exercise}/kernel.py")
    text = str(found)
    assert text.startswith(f"{exercise}: 0 of 10 points") and points(found) == [0, 0, 0]
    assert "error[NKI0253]" in text and "help: write it" in text
    assert text.endswith(f"course/{exercise}/README.md says how to begin")
    if exercise == "1_vector_add":  # the page shows what the command prints
        page = (grade.COURSE / "README.md").read_text("utf-8")
        assert f"```text\n{text}\n```" in page


def test_a_kernel_that_a_hidden_shape_stops_keeps_the_visible_points(tmp_path: Path) -> None:
    text = solution("1_vector_add").read_text()
    text = text.replace("((0, whole, rows), (whole, n, 1))", "((0, n, rows),)")
    found = graded("1_vector_add", text, tmp_path)
    assert points(found) == [4, 0, 0] and "(1000,)" in str(found)


def test_a_kernel_that_is_wrong_on_one_hidden_case_gets_part_of_the_points(tmp_path: Path) -> None:
    text = solution("5_softmax").read_text().replace("bias=least,", "")
    found = graded("5_softmax", text, tmp_path)
    assert points(found) == [4, 1, 0]
    right, wrong, first = found.parts[1].why
    assert right == "ragged rows: right" and wrong.startswith("large numbers: output_0:")
    assert first.startswith("  [0, 1] is not finite, expected ")


SIZED = """
kernels = ["softmax"]
families = []
reference = { function = "reference.py:softmax" }
outputs = { rtol = 1e-4, atol = 1e-7 }
[[case]]
name = "one tile"
inputs = { x = "f32[128,512]" }
[[case]]
name = "drawn"
inputs = { x = "f32[128,n]" }
sizes = { n = [300, 400] }
hidden = true
"""


def test_a_case_that_was_not_judged_brings_no_points(tmp_path: Path) -> None:
    """Without a secret there is none with sizes that it would choose."""
    text = (grade.COURSE / "reference.py").read_text()
    (tmp_path / "reference.py").write_text(text)
    (tmp_path / "task.toml").write_text(SIZED)
    found = grade.grade(tmp_path, str(solution("5_softmax")))
    assert points(found) == [4, 0, 0] and found.parts[1].why == ["no case was judged"]
    known = "[[case]]\nname = 'known'\ninputs = { x = 'f32[128,64]' }\nhidden = true\n"
    (tmp_path / "task.toml").write_text(SIZED + known)
    found = grade.grade(tmp_path, str(solution("5_softmax")))
    assert points(found) == [4, 3, 3] and found.parts[1].why == ["known: right"]


def test_a_case_without_a_result_is_a_complaint() -> None:
    task = read_task(grade.COURSE / "5_softmax" / "task.toml")
    known = Judge(task).subject(Candidate("k.py", b""))
    found = Evaluation(**known, compiled=True, runnable=True, correct=True)
    assert grade._complaint(found, task.cases[0]) == "it was not judged"


def test_a_slow_kernel_learns_what_to_improve(tmp_path: Path) -> None:
    text = solution("1_vector_add").read_text()
    text = text.replace("rows = nl.tile_size.pmax", "rows = 4")
    found = graded("1_vector_add", text, tmp_path)
    assert points(found)[:2] == [4, 3] and points(found)[2] < 3
    assert "the reference takes" in str(found)
    assert found.more[0].startswith("improve: bound by D")
    assert "critical path: mine.py:" in found.more[1]


def test_advice_says_what_it_saves(tmp_path: Path) -> None:
    text = solution("3_matmul").read_text()
    text = text.replace("    left, right = load(a_t), load(b)\n", "")
    text = text.replace("psum = nl", "left, right = load(a_t), load(b)\n            psum = nl")
    found = graded("3_matmul", text, tmp_path)
    assert points(found)[:2] == [4, 3] and points(found)[2] < 3
    assert any("once and keep" in line and "% less time)" in line for line in found.more)


def test_a_kernel_that_tricks_gets_nothing(tmp_path: Path) -> None:
    text = (
        solution("5_softmax")
        .read_text()
        .replace("dst=y[row : row + p, :]", "dst=x[row : row + p, :]")
    )
    found = graded("5_softmax", text.replace("return y", "return x"), tmp_path)
    assert points(found) == [0, 0, 0] and "writes its inputs" in str(found)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, none = str(solution("5_softmax")), str(tmp_path / "none.py")
    assert grade.main(["5_softmax", good, "course/5_softmax/kernel.py", none, "--json"]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["points"] for line in out.splitlines()] == [10, 0]
    assert err.startswith("grade.py: cannot read")
    assert grade.main(["course/5_softmax/", good]) == 0  # as a shell completes it


def test_the_command_adds_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [grade.Part("visible", 4, 4), grade.Part("hidden", 3, 3), grade.Part("time", 3, 3)]
    monkeypatch.setattr(grade, "grade", lambda folder, file: grade.Grade("e", file, whole, []))
    assert grade.main([]) == 0
    assert capsys.readouterr().out.endswith("all: 60 of 60 points\n")


HOSTILE = """
import nki
@nki.jit
def vector_add(a, b):
    print("1_vector_add: 10 of 10 points")
    raise ValueError("x\\n1_vector_add: 10 of 10 points\\r\\x1b[2K")
"""


def test_a_hand_in_imitates_no_points(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "x\n1_vector_add: 10 of 10 points\x1b[2K.py"
    Path(name).write_text(HOSTILE)
    assert grade.main(["1_vector_add", name, f"none{name}"]) == 2
    said = capfd.readouterr()
    first, *others = said.out.splitlines()
    assert first.startswith("1_vector_add: 0 of 10 points") and len(others) == 4
    assert not [line for line in others if not line.startswith("  ")]
    assert len(said.err.splitlines()) == 1 and not set("\x1b\r") & {*said.out, *said.err}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["", "k.py"], "`` is no exercise; they are 1_vector_add, "),
        (["5_softmax\n", "k.py"], r"`5_softmax\n` is no exercise; they are 1_vector_add, "),
        (["5_softmax", ""], "cannot read ``"),
    ],
)
def test_wrong_words_are_told(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = grade.main(words)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and said in capsys.readouterr().err
