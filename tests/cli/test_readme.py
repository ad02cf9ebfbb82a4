"""The commands of README.md and docs/start.md work, and README.md's Python prints what it says.

NKIC_BLESS=1 writes what the Python prints into the page.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.harness import warm
from tests.harness.bless import blessing

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
TOOLS = {"nkic": warm.NKIC, "nki-run": warm.NKI_RUN}
START = (ROOT / "docs/start.md").read_text("utf-8")
COMMANDS = re.findall(r"^    ((?:nkic|nki-run) [^\n]*)$", TEXT + START, re.MULTILINE)
_EXAMPLE = re.compile(r"^```python file=first\.py\n(.*?)^```\n\n```text\n(.*?)^```\n", re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the kernel of docs/start.md, its data, and expected results."""
    made = tmp_path_factory.mktemp("readme")
    (kernel,) = re.findall(r"^```python\n(# /// nkic\n.*?)^```$", START, re.DOTALL | re.MULTILINE)
    (made / "kernel.py").write_text(kernel, "utf-8")
    a, b = np.full((128, 512), 1.5, np.float16), np.full((128, 512), 2.0, np.float16)
    for name in ("data.npz", "d.npz", *(f"a{rank}.npz" for rank in range(4))):
        np.savez(made / name, a=a, b=b)
    for name in ("golden.npz", "e.npz"):
        np.savez(made / name, output_0=a + b)
    return made


def test_the_first_kernel(tmp_path: Path) -> None:
    (code, printed), (wrong, error) = _EXAMPLE.findall(TEXT)
    (tmp_path / "first.py").write_text(code + wrong, "utf-8")
    done = warm.run_text(warm.script("first.py"), cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("CompileError: ") == 1
    said = done.stderr.partition("CompileError: ")[2]
    if blessing():
        page = TEXT
        for source, old, new in ((code, printed, done.stdout), (wrong, error, said)):
            text = f"{source}```\n\n```text\n"
            page = page.replace(f"{text}{old}```", f"{text}{new}```")
        (ROOT / "README.md").write_text(page, "utf-8")
    else:
        assert (printed, error) == (done.stdout, said)


def test_there_are_commands() -> None:
    assert {line.split()[0] for line in COMMANDS} == set(TOOLS)
    assert len(COMMANDS) >= 8


def test_commands_work_in_their_order(folder: Path) -> None:
    for line in COMMANDS:
        tool, *words = shlex.split(line, comments=True)
        done = warm.run_text(TOOLS[tool], *words, cwd=folder)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    with np.load(folder / "results.npz") as found:
        assert np.array_equal(found["output_0"], np.full((128, 512), 3.5, np.float16))
