"""Tuning: the best point is right and fastest, and a tuning that was stopped continues."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile
from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.judge import Candidate, Judge, Task, read_task
from nkic.judge.tuning import Tuned, tune
from tests.harness.commands import ROOT, hear_signals

KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

TILE = 64  # tune: 64, 128, 256
EXACT = True  # tune: True, False
SPARE = 1  # tune: 1, 1000


@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for left in range(0, x.shape[1], TILE):
        tile = nl.ndarray((128, TILE * SPARE), dtype=x.dtype, buffer=nl.sbuf)
        strip = tile[:, 0:TILE]
        nisa.dma_copy(dst=strip, src=x[:, left : left + TILE])
        if EXACT:
            nisa.activation(dst=strip, op=nl.exp, data=strip)
        nisa.dma_copy(dst=out[:, left : left + TILE], src=strip)
    return out
"""
TASK = """[reference]
function = "reference.py:exp"
[[case]]
inputs = { x = "f32[128,256]" }
"""
REFERENCE = "import numpy as np\n\ndef exp(x):\n    return np.exp(x)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune")
    for name, text in (("k.py", KERNEL), ("task.toml", TASK), ("reference.py", REFERENCE)):
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def task(folder: Path) -> Task:
    return read_task(folder / "task.toml")


@pytest.fixture(scope="module")
def tuned(folder: Path, task: Task) -> Tuned:
    return tune(folder / "k.py", task, best=2, jobs=2, results=folder / "results")


def test_the_best_is_what_trying_everything_finds(tuned: Tuned, task: Task) -> None:
    judge = Judge(task, families=False)
    legal = [o for o in tuned.outcomes if o.status != "refused"]
    assert len(tuned.outcomes) == tuned.space.size == 12 and len(legal) == 6
    texts = [Candidate.of_text(tuned.space.text(outcome.point)) for outcome in legal]
    found = [*judge.evaluate_all(texts, jobs=2)]
    assert [o.us * 1000 for o in legal] == pytest.approx([e.time_ns for e in found], rel=0.01)
    right = [(e.time_ns, o.point) for e, o in zip(found, legal, strict=True) if e.correct]
    assert len(right) == 3
    assert tuned.best is not None and tuned.best.point == min(right, key=lambda r: r[0] or 0)[1]
    assert tuned.text == tuned.space.text(tuned.best.point)
    assert f"TILE = {tuned.best.point['TILE']}  # tune: 64, 128, 256\nEXACT = True" in tuned.text


def test_a_wrong_point_never_wins(tuned: Tuned) -> None:
    fastest = min((o for o in tuned.outcomes if o.us), key=lambda o: o.us)
    assert fastest.status == "wrong" and fastest.point["EXACT"] == "False"
    assert tuned.best is not None and tuned.best.us > fastest.us
    assert {o.point["EXACT"] for o in tuned.correct} == {"True"}
    assert all(o.correct for o in tuned.front)


def test_illegal_points_are_counted_by_reason(tuned: Tuned) -> None:
    counts = {kind: len(group) for kind, group in tuned.failures.items()}
    assert [(s, code, n) for (s, code, _), n in counts.items() if s == "refused"] == [
        ("refused", "NKI0501", 6)
    ]
    assert re.search(r"6 points  refused  NKI0501  no room for `tile` in SBUF", tuned.table)
    assert tuned.counts.startswith("12 points: ") and "6 refused" in tuned.counts


def test_the_lines_say_what_the_table_says(tuned: Tuned) -> None:
    lines = [json.loads(line) for line in tuned.jsonl().splitlines()]
    assert len(lines) == 12 and tuned.best is not None
    assert lines[0]["point"] == tuned.best.point and lines[0]["place"][0] == 1
    assert lines[0]["front"] and lines[0]["worth_a_device"]
    assert all((line["place"] is None) == (line["status"] != "correct") for line in lines)
    assert lines[0]["sbuf_bytes"] > 0


def test_the_picture_has_every_point_that_compiles(tuned: Tuned) -> None:
    assert tuned.svg.count("<title>") == 6 and tuned.svg.count('class="ring"') == 2
    assert "prefers-color-scheme: dark" in tuned.svg and "none is both faster" in tuned.svg
    for outcome in tuned.front:
        assert f">{outcome.label}</text>" in tuned.svg


def test_the_command_writes_what_the_tuner_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = ["tune", "k.py", "task.toml", "--vary", "TILE=256", "--results", "kept", "-j", "2"]
    more = ["--jsonl", "o.jsonl", "--write", "best.py", "--plot", "p.svg"]
    assert run(command, "nkic", [*words, *more]) == 0
    out = capfd.readouterr().out
    assert re.search(r"1 +TILE=256 .* the best; on the front\n1 point: 1 correct", out)
    assert (folder / "best.py").read_text() == KERNEL.replace("TILE = 64", "TILE = 256")
    (line,) = map(json.loads, (folder / "o.jsonl").read_text().splitlines())
    assert line["point"] == {"TILE": "256"}
    assert (folder / "p.svg").read_text().startswith("<svg")
    assert run(command, "nkic", ["tune", "k.py", "task.toml", "--vary", "SPARE=1000"]) == 1
    assert "1 point: 1 refused" in capfd.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("jobs", "first"), [("1", "False,True"), ("2", "True,False")])
def test_an_interrupt_keeps_the_points(
    tmp_path: Path, number: signal.Signals, jobs: str, first: str
) -> None:
    """What was found is said and kept, and no folder of its processes is left, as if killed."""
    kept = ("--results", "kept") if jobs == "2" else ()
    words = ("--vary", f"EXACT={first}", "-j", jobs, *kept)
    with begun(tmp_path, words, subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdout is not None
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(60) == 128 + number
        table = process.stdout.read()
    assert said == "`o.jsonl` is not written: what was done is in `o.jsonl.part`, 1 line\n"
    assert "the fastest estimate: TILE=64 EXACT=False, " in table
    assert "4 points: 1 estimated alone, 3 not tried" in table
    more = "" if kept else "; with --results FILE a tuning continues"
    assert table.endswith(f"\nit was stopped{more}\n")
    (line,) = map(json.loads, (tmp_path / "o.jsonl.part").read_text().splitlines())
    assert line["point"] == {"TILE": "64", "EXACT": "False"}
    assert (tmp_path / "o.jsonl").read_text() == "of a run before\n"
    assert [*(tmp_path / "tmp").iterdir()] == [] and not [*tmp_path.glob(".nkic-*")]


def test_a_terminal_that_closes_keeps_the_points(tmp_path: Path) -> None:
    """It takes no table any more."""
    ours, its = pty.openpty()
    with begun(tmp_path, ("--vary", "EXACT=False,True"), its) as process:
        os.close(its)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 128 + signal.SIGHUP
    assert len((tmp_path / "o.jsonl.part").read_text().splitlines()) == 1
    assert [*(tmp_path / "tmp").iterdir()] == [], "no crash is reported"


def begun(folder: Path, words: Sequence[str], stdout: int) -> subprocess.Popen[str]:
    """Start a tuning whose points with EXACT never end; return it while it judges one of these."""
    endless = KERNEL.replace("    out =", "    while EXACT: pass\n    out =", 1)
    for name, text in (("k.py", endless), ("task.toml", TASK), ("reference.py", REFERENCE)):
        (folder / name).write_text(text)
    (folder / "o.jsonl").write_text("of a run before\n")
    (folder / "tmp").mkdir()
    start = "import sys; from nkic.cli import start_nkic; sys.exit(start_nkic())"
    line = ("tune", "k.py", "task.toml", "--vary", "TILE=64,128", "--jsonl", "o.jsonl", "-v")
    process = subprocess.Popen(
        [sys.executable, "-c", start, *line, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")},
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "TILE=64 EXACT=False: compiled\n"
    time.sleep(1)  # the process of the next point has begun
    return process


def test_an_error_keeps_the_points_and_is_no_stop(folder: Path, task: Task) -> None:
    heard: list[Tuned] = []

    def told(text: str) -> None:
        raise UsageFailed([])

    with pytest.raises(UsageFailed):
        tune(folder / "k.py", task, {"TILE": [64, 128]}, told=told, stopped=heard.append)
    (found,) = heard
    assert len(found.outcomes) == 1 and "\nan error ended it; " in found.table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("k.py",), "missing `TASK.toml`"),
        (("k.py", "task.toml", "--vary", "TILE"), "--vary TILE: no NAME=VALUES"),
        (("k.py", "task.toml", "--budget", "soon"), "`soon` is no time"),
        (("k.py", "task.toml", "--budget", "0s"), "--budget: `0s` is no time"),
        (("k.py", "task.toml", "--vary", "A=1", "--vary", "A=2"), "`A` is varied twice"),
        (("k.py", "task.toml", "--vary", "tile=1"), "no value of the name `tile`"),
        (("k.py", "task.toml", "--vary", "TILE=\udc80..2"), "is no list of values"),
        (("k.py", "task.toml", "--cluster", "local:2", "-j", "2"), "exclude each other"),
        (("k.py", "task.toml", "--cluster", "local:none"), "has no number of workers"),
    ],
)
def test_a_wrong_command_line_is_an_error(
    folder: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(command, "nkic", ["tune", *words]) == 2
    assert message in capsys.readouterr().err


def test_levels_are_a_choice(folder: Path, task: Task) -> None:
    found = tune(SourceFile("k.py", KERNEL), task, {"-O": "0,2", "TILE": "64"}, jobs=2)
    assert [o.point["-O"] for o in found.outcomes] == ["0", "2"]
    assert all(o.correct for o in found.outcomes)
    assert found.text == KERNEL and found.outcomes[0].program != found.outcomes[1].program


def test_a_level_that_gains_nothing_is_not_advised(folder: Path, task: Task) -> None:
    found = tune(SourceFile("k.py", KERNEL), task, {"-O": "0..1", "TILE": "64"}, jobs=2)
    (one, other) = found.outcomes
    assert one.cost[:2] == other.cost[:2]  # else choose another kernel
    assert found.best is not None and found.best.point["-O"] == "1"
    assert "is compiled with -O" not in found.table


@pytest.mark.slow  # starts workers
@pytest.mark.parametrize("trials", [200, 4])  # all points; a search
def test_a_cluster_finds_the_same(folder: Path, task: Task, trials: int) -> None:
    levels = {"TILE": [64, 128, 256], "-O": "0..1"}
    clustered = tune(folder / "k.py", task, levels, trials=trials, cluster="local:1")
    here = tune(folder / "k.py", task, levels, trials=trials, jobs=16)  # a worker has as many
    assert len(clustered.outcomes) == min(trials, 6) and clustered.best is not None
    assert (clustered.jsonl(), clustered.table, clustered.svg, clustered.text) == (
        *(here.jsonl(), here.table),
        *(here.svg, here.text),
    )


@pytest.mark.parametrize(
    "words", [("tune", "k.py", "task.toml"), ("evaluate", "task.toml", "k.py")]
)
@pytest.mark.parametrize("cluster", [(), ("--cluster", "local:none")])
def test_a_cluster_has_time_to_close_after_a_signal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], cluster: tuple[str, ...]
) -> None:
    page = SimpleNamespace(grace=2.0)
    monkeypatch.setattr("nkic.base.watcher.page", lambda: page)
    monkeypatch.chdir(folder)
    assert run(command, "nkic", [*words, *cluster, *["--jsonl", ""] * (not cluster)]) == 2
    assert page.grace == (60.0 if cluster else 2.0)
