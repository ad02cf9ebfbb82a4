"""`nkic evaluate`: its table, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nkic.cli.common import run
from nkic.cli.nkic import command
from tests.judge.test_cheats import CONSTANT, GOOD, REFERENCE, TASK

PLAIN = TASK.replace('required_families = ["large"]\n', "").split('[[case]]\nname = "narrow"')[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("task.toml").write_text(PLAIN)
    Path("reference.py").write_text(REFERENCE)
    Path("good.py").write_text(GOOD)
    Path("many").mkdir()
    Path("many/b.py").write_text("def k(x")
    Path("many/a.py").write_text(CONSTANT)
    Path("many/notes.txt").write_text("no candidate")
    return tmp_path


def said(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(command, "nkic", ["evaluate", *words])
    return code, *capfd.readouterr()


def test_a_time_alone_is_no_verdict(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capfd, "task.toml", "good.py", "--time-only")
    assert code == 0 and out.splitlines()[-1] == "1 of 1 candidate compiled, none run"


def test_a_folder_is_judged_in_order(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capfd, "task.toml", "good.py", "many", "--jsonl", "-", "--no-families")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and [(f["candidate"], f["status"]) for f in found] == [
        ("good.py", "correct"),
        ("many/a.py", "wrong"),
        ("many/b.py", "refused"),
    ]


def test_the_reference_in_a_folder_is_no_candidate(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("many/a.py", "many/b.py"):
        Path(name).unlink()
    for task, place in (("task.toml", "."), ("many/../task.toml", "."), ("task.toml", "many/..")):
        _, out, _ = said(capfd, task, place, "--jsonl", "-", "--time-only")
        found = [Path(json.loads(line)["candidate"]).name for line in out.splitlines()]
        assert found == ["good.py"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("task.toml",), "no candidate is given"),
        (("task.toml", "none.py"), "cannot read `none.py`"),
        (("none.toml", "good.py"), "cannot read `none.toml`"),
        (("task.toml", "good.py", "--secret", "many/empty"), "`many/empty` is empty"),
        (("task.toml", "good.py", "--results", "good.py"), "cannot hold evaluations"),
        (("task.toml", "good.py", "--cluster", "local:0"), "has no number of workers"),
        (("task.toml", "good.py", "--cluster", "local:2", "-j", "2"), "exclude each other"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("many/empty").write_text("\n")
    code, out, err = said(capfd, *words)
    assert code == 2 and message in err and not out
    assert Path("good.py").read_text() == GOOD
