"""Pages of commands: the commands run, and print the text that follows them.

NKIC_BLESS=1 writes the output of the commands into the page.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as compiler
from tests.harness.bless import blessing

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMMANDS = {"nkic": compiler, "nki-run": nki_run}
CODES = {
    "--batch": 1,
    "--fix": 0,
    "--json": 0,
    "--baseline": 0,
    "kernels": 1,
    "--expect-at": 1,
    "evaluate": 1,
}  # the exit code of a command with an option that finds something
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```\n", re.M | re.S)


@contextmanager
def one_stream() -> Iterator[None]:
    """Standard error goes to standard output, so that both are read in the order of a terminal."""
    kept = os.dup(2)
    os.dup2(1, 2)
    try:
        with redirect_stderr(sys.stdout):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def said(line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    tool, *words = shlex.split(line)
    if tool not in COMMANDS:
        line = re.sub("^python ", f"{shlex.quote(sys.executable)} ", line)
        return subprocess.run(
            line, shell=True, check=True, text=True, stdout=subprocess.PIPE
        ).stdout
    into = words[-1:] if ">" in words else []
    words = words[:-2] if into else words
    if "<" in words:
        monkeypatch.setattr("sys.stdin", io.StringIO(Path(words.pop()).read_text("utf-8")))
        words.remove("<")
    wanted = next((code for word, code in CODES.items() if word in words), 0)
    with nullcontext() if into else one_stream():
        assert run(COMMANDS[tool], tool, words) == wanted, line
    out, err = capfd.readouterr()
    for path in into:
        Path(path).write_text(out, "utf-8")
        out = ""
    return out + err


def printed_by(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> list[str]:
    """Write a page's files here, run its commands, and return the texts, each as on the page."""
    page = made = (DOCS / name).read_text("utf-8")
    printed, texts = "", []
    for language, file, text in _BLOCK.findall(page):
        if file:
            Path(file).write_text(text, encoding="utf-8")
        if language == "console":
            lines = [line.removeprefix("$ ") for line in text.splitlines()]
            printed = "".join(said(line, monkeypatch, capfd) for line in lines)
        elif language == "text":
            texts.append(printed)
            made = made.replace(f"```text\n{text}```\n", f"```text\n{printed}```\n", 1)
            assert blessing() or text == printed
    if blessing():
        (DOCS / name).write_text(made, "utf-8")
    return texts


def test_debugging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = printed_by("debugging.md", monkeypatch, capfd)
    assert "norm.py:18:5: error[NKI1009]: after line 18, `total` differs from" in texts[0]
    assert "output_0: as expected" in texts[1]
    _mended()


def test_equality(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kernels, reference, rows = printed_by("equality.md", monkeypatch, capfd)
    assert "limit of the second kernel at plain.py:15: " in kernels
    assert reference.startswith("equal: ") and "limit" not in reference
    assert rows.startswith("dependent: ") and "tensor_reduce at sums.py:11" in rows


def test_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = printed_by("migration.md", monkeypatch, capfd)
    assert text.startswith("--- add.py\n") and text.count(": same bits") == 4


def test_evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (table,) = printed_by("evaluate.md", monkeypatch, capfd)
    assert [line.split()[2] for line in table.splitlines()[:3]] == ["correct", "correct", "cheat"]
    lines = Path("results.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["candidate"] for line in lines] == [
        "good.py",
        "nomax.py",
        "constant.py",
    ]


def test_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernels").mkdir()
    first, second, compared = printed_by("ci.md", monkeypatch, capfd)
    assert "kernels/negate.py  rejected  1" in first
    assert "fixed kernels/negate.py:14:52: write `multiply`" in second
    assert compared.count("(+0.0%)") == 2
    assert {path.name for path in Path("build").iterdir()} == {"double.neff", "negate.neff"}


def _mended() -> None:
    """The error that the page finds is the only one in the kernel."""
    artifact = nkic.compile("right.py")
    assert run(nki_run, "nki-run", ["norm.neff", "--inputs", "x.npz", "-q", "--expected", "e.npz"])
    x, there = np.load("x.npz")["x"], np.load("e.npz")["output_0"]
    near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
    mean = np.load("mean.npz")["total"]
    result = nkic.run(
        artifact, {"x": x}, dump=["total@18"], expect_at={18: {"total": mean}}, **near
    )
    np.testing.assert_allclose(result.outputs["output_0"], there, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.dumped("total"), [mean], atol=1e-6)
