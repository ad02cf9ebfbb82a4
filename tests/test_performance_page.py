"""Test docs/performance.md.

Its commands run and print the text that follows them, figures included, and following the verdicts
makes the kernel more than six times as fast. NKIC_BLESS=1 writes the output of the commands into
the page.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as nkic
from tests.harness.bless import blessing

PAGE = Path(__file__).resolve().parents[1] / "docs/performance.md"
COMMANDS = {"nkic": nkic, "nki-run": nki_run}
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```\n", re.M | re.S)
_LAST_BITS = re.compile(r"sha256 \w+")  # sums of products: another BLAS may round one differently


class Ran(NamedTuple):
    """A command of the page: its words, its exit code, and its output."""

    words: list[str]
    code: int
    said: str


def command(line: str, capfd: pytest.CaptureFixture[str]) -> Ran:
    tool, *words = shlex.split(line)
    code = run(COMMANDS[tool], tool, words)
    out, err = capfd.readouterr()
    return Ran([tool, *words], code, out + err)


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page, said = PAGE.read_text("utf-8"), ""
    ran: list[Ran] = []
    made = page
    for language, file, text in _BLOCK.findall(page):
        if file:
            Path(file).write_text(text, encoding="utf-8")
        elif language == "console":
            done = [command(line.removeprefix("$ "), capfd) for line in text.splitlines()]
            assert [one.code for one in done] == [0] * len(done), done
            said, ran = "".join(one.said for one in done), [*ran, *done]
        elif language == "text":
            made = made.replace(f"```text\n{text}```\n", f"```text\n{said}```\n", 1)
            if not blessing():
                assert _LAST_BITS.sub("", text) == _LAST_BITS.sub("", said)
    if blessing():
        PAGE.write_text(made, "utf-8")
    runs = [one.said for one in ran if one.words[0] == "nki-run"]
    assert "less time: declare a, b (matmul.py:10, 11) inside the loop" in runs[0]
    assert all("less time: multiply bfloat16, not float32" in text for text in runs[1:3])
    slow, own, once, fast = (int(_cycles(text)) for text in runs[:4])
    assert slow > 3.5 * own and once < 1.05 * own and once > 1.5 * fast and slow > 6 * fast
    same_results()


def _cycles(text: str) -> str:
    (found,) = re.findall(r"matmul: ([\d,]+) cycles", text)
    return str(found).replace(",", "")


def same_results() -> None:
    """The kernel that loads once computes the same results as the first one."""
    np.savez(
        "in.npz",
        lhsT=np.random.default_rng(1).standard_normal((512, 512), np.float32),
        rhs=np.random.default_rng(2).standard_normal((512, 1024), np.float32),
    )
    words = ("--inputs", "in.npz", "-q")
    assert run(nki_run, "nki-run", ["slow.neff", *words, "--outputs", "e.npz"]) == 0
    assert run(nki_run, "nki-run", ["once.neff", *words, "--expected", "e.npz"]) == 0
