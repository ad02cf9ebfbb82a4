"""`nkic evaluate`: its table, its exit codes, and what it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nkic.cli import nkic
from nkic.cli.common import run
from nkic.cli.nkic import command
from tests.harness.commands import ROOT, hear_signals
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


def test_values_follow_for_the_fastest(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Until as many are right as are asked for: the fastest is wrong, the slowest not run."""
    Path("slow.py").write_text(GOOD.replace("t = nl.load(x)", "t = nl.copy(nl.load(x))"))
    words = ("task.toml", "slow.py", "good.py", "many", "--no-families", "--time-only")
    code, out, _ = said(capfd, *words, "--best", "1", "--jsonl", "-")
    found = [(r["candidate"], r["status"]) for r in map(json.loads, out.splitlines())]
    assert code == 0 and found == [
        *(("slow.py", "compiled"), ("good.py", "compiled"), ("many/a.py", "compiled")),
        *(("many/b.py", "refused"), ("many/a.py", "wrong"), ("good.py", "correct")),
    ]
    code, out, _ = said(capfd, *words, "--best", "3")
    assert code == 1 and "2 of 4 candidates correct" in out
    assert [line.split()[1:3] for line in out.splitlines()[:2]] == [
        *(["good.py", "correct"], ["slow.py", "correct"])
    ]
    code, _, err = said(capfd, "task.toml", "good.py", "--best", "1")
    assert code == 2 and "`--best` needs `--time-only`" in err


def test_a_folder_is_judged_in_order(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capfd, "task.toml", "good.py", "many", "--jsonl", "-", "--no-families")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and [(f["candidate"], f["status"]) for f in found] == [
        ("good.py", "correct"),
        ("many/a.py", "wrong"),
        ("many/b.py", "refused"),
    ]


def test_printed_programs_in_a_folder_are_candidates(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["good.py", "--arg", "x=f32[128,64]", "-q", "--emit"]
    assert run(command, "nkic", [*words, "ir=many/p.ir", "--emit", "asm=many/p.asm"]) == 0
    capfd.readouterr()
    _, out, _ = said(capfd, "task.toml", "many", "--jsonl", "-", "--time-only")
    found = {r["candidate"]: r["status"] for r in map(json.loads, out.splitlines())}
    assert found["many/p.ir"] == found["many/p.asm"] == "compiled" and len(found) == 4


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
        (("task.toml", "good.py", "-O2"), "the task says it: `optimise = 2`"),
        (("task.toml", "good.py", "-x"), "`nkic evaluate --help` shows every option"),
        (("task.toml", "none.py"), "cannot read `none.py`"),
        (("none.toml", "good.py"), "cannot read `none.toml`"),
        (("task.toml", "good.py", "--secret", "many/empty"), "`many/empty` is empty"),
        (("task.toml", "good.py", "--secret", "secret"), "short: it could be guessed"),
        (("task.toml", "good.py", "--secret", "padded"), "and must have 16 bytes"),
        (("task.toml", "good.py", "--results", "secret"), "cannot hold evaluations"),
        (("task.toml", "good.py", "--cluster", "local:0"), "has no number of workers"),
        (("task.toml", "good.py", "--traces", "x"), "`--traces` needs `--workloads`"),
        (("task.toml", "good.py", "--results", ""), "--results: the value is empty"),
        (("task.toml", "good.py", ""), "the value is empty"),
        (("task.toml", "bare"), "no candidate is in `bare`"),
        (("task.toml", "task.toml"), "`task.toml` is no candidate: a TOML file is a task"),
        (("task.toml", "good.py", "none.toml"), "nkic evaluate TASK.toml CANDIDATE.py"),
        (("task.toml", "good.py", "--cluster", "local:2", "-j", "2"), "exclude each other"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("many/empty").write_text("\n")
    Path("secret").write_text("no database")
    Path("padded").write_text(f"{'x' * 15}{' ' * 99}")
    Path("bare").mkdir()
    Path("bare/link.py").symlink_to("../good.py")
    code, out, err = said(capfd, *words)
    assert code == 2 and message in err and not out
    assert Path("good.py").read_text() == GOOD


INPUTS = ("task.toml", "reference.py", "good.py", "many/a.py", "secret")
WRITERS = ("--jsonl", "--results", "--message-file")


@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_no_output_is_an_input(
    command: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("secret").write_text("sixteen of bytes")
    Path("many/a.py").write_text("")  # an empty file could become a database
    before = {name: Path(name).read_bytes() for name in INPUTS}
    words = {
        "evaluate": ("task.toml", "good.py", "many", "--secret", "secret"),
        "tune": ("good.py", "task.toml"),
    }[command]
    others = () if command == "evaluate" else ("--write", "--plot")
    for option in (*WRITERS, *others):
        kept = "--results" if option != "--results" else "--jsonl"
        for name in INPUTS:
            if command == "tune" and name in ("many/a.py", "secret"):
                continue
            given = (command, *words, kept, "kept", option, name)
            code = run(nkic.command, "nkic", given)
            assert code == 2 and "by this run" in capfd.readouterr().err, given
            assert {name: Path(name).read_bytes() for name in INPUTS} == before, given


ENDLESS = GOOD.replace("    out =", "    while nl: pass\n    out =", 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_judged(folder: Path, number: signal.Signals) -> None:
    Path("endless.py").write_text(ENDLESS)
    Path("many/real").write_text("of a run before\n")
    Path("out").symlink_to("many/real")  # to what may be another disk
    real = (folder / "many").resolve()
    # The second may be a candidate, or what an earlier run kept.
    part, others = real / "real.part5", [real / f"real.part{i}" for i in ("", 3, 4)]
    for other in others[:2]:
        other.write_text("of a run before\n")
    (real / "real.part2").mkdir()
    words = ("task.toml", "good.py", "endless.py", "--jsonl", "out", "--no-families", "-v")
    process = subprocess.Popen(
        [sys.executable, "-m", "nkic.cli.nkic", "evaluate", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "good.py: correct\n"
        others[2].write_text("of a run before\n")  # of a run beside it
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(60) == 128 + number
    assert said == f"`out` is not written: what was done is in `{part}`, 1 line\n"
    assert json.loads(part.read_text())["candidate"] == "good.py"
    assert all(file.read_text() == "of a run before\n" for file in (Path("out"), *others))
    assert not [*Path().rglob(".nkic-*")]


@pytest.mark.parametrize("name", ["t", "temporary" * 10])
def test_no_folder_of_processes_is_left(folder: Path, name: str) -> None:
    """Nor does a long path of the temporary folder matter, in which no socket can be."""
    with tempfile.TemporaryDirectory() as around:
        left = Path(around, name)
        left.mkdir()
        assert _judged_with(left) == 0 and [*left.iterdir()] == []


def _judged_with(temporary: Path) -> int:
    start = "import sys; from nkic.cli import start_nkic; sys.exit(start_nkic())"
    ended = subprocess.run(
        [sys.executable, "-c", start, "evaluate", "task.toml", "good.py", "--no-families"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        capture_output=True,
        timeout=100,
    )
    return ended.returncode


@pytest.mark.parametrize("option", ["--results", "--message-file"])
def test_what_is_kept_of_a_run_replaces_nothing_else_of_it(
    option: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("task.toml", "good.py", "--jsonl", "out", option, "out.part")
    code, _, err = said(capfd, *words)
    assert code == 2 and "`out.part` is written by this run" in err


def test_what_cannot_be_read_costs_its_neighbours_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nkic.judge.judge.MAX_BYTES", len(GOOD) + 1)
    Path("many/big.py").write_text(GOOD + "  ")
    os.mkfifo("many/pipe.py")
    Path("many/secret.py").symlink_to("/etc/passwd")
    code, out, _ = said(capfd, "task.toml", "many", "good.py", "--jsonl", "-", "--no-families")
    found = {each["candidate"]: each for each in map(json.loads, out.splitlines())}
    assert code == 1 and [*found] == ["many/a.py", "many/b.py", "many/big.py", "good.py"]
    assert found["many/big.py"]["problem"].endswith("is larger than the limit of 313 bytes")
    assert found["good.py"]["correct"]


@pytest.mark.parametrize("form", ["human", "github"])
def test_a_name_is_but_a_name(form: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [
        "\x1b[31mx\n::error::y\u202e.py",
        "\\a\\..\\b.py",
        os.fsdecode(b"\xff.py"),
        "a\n::c.py",
    ]
    for name in names:
        Path("many", name).write_text(GOOD)
    words = ("--no-families", "--no-sensitivity", "-v", "--message-format", form, "-j", "2")
    _, out, err = said(capfd, "task.toml", "many", *words)
    assert out.count(" correct ") == len(names) == err.count(": correct\n")
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]|(?m:^::)", out + err)
