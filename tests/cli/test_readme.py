"""The commands of README.md and docs/start.md work, and the Python there does what it says.

NKIC_BLESS=1 writes what README.md's Python prints into the page.
"""

import re
import shlex
from pathlib import Path

import numpy as np

from tests.harness import warm
from tests.harness.bless import blessing

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
START = (ROOT / "docs/start.md").read_text("utf-8")
TOOLS = {"nkic": warm.NKIC, "nki-run": warm.NKI_RUN}
_COMMAND = re.compile(r"^    ((?:nkic|nki-run) [^\n]*)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^```python file=first\.py\n(.*?)^```\n\n```text\n(.*?)^```\n", re.M | re.S)


def carry_out(commands: list[str], folder: Path) -> None:
    for line in commands:
        tool, *words = shlex.split(line, comments=True)
        done = warm.run_text(TOOLS[tool], *words, cwd=folder)
        assert done.returncode == 0, f"{line}: {done.stderr}"


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
    commands = _COMMAND.findall(TEXT)
    assert [line.split()[0] for line in commands] == ["nkic", "nki-run"]
    carry_out(commands, tmp_path)


def test_the_commands_of_the_start_work_in_their_order(tmp_path: Path) -> None:
    kernel, data = re.findall(r"^```python\n(.*?)^```$", START, re.DOTALL | re.MULTILINE)
    (tmp_path / "kernel.py").write_text(kernel, "utf-8")
    (tmp_path / "data.py").write_text(data, "utf-8")
    assert warm.run_text(warm.script("data.py"), cwd=tmp_path).returncode == 0
    commands = _COMMAND.findall(START)
    assert {line.split()[0] for line in commands} == set(TOOLS) and len(commands) >= 8
    carry_out(commands, tmp_path)
    for results in ("results.npz", "o3.npz"):
        with np.load(tmp_path / results) as found:
            assert np.array_equal(found["output_0"], np.full((128, 512), 2, np.float16))
