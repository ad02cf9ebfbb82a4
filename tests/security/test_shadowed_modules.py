"""Kernels that are named as modules are: no process that nkic starts imports one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkic.serve import lsp_server
from tests.judge.test_cheats import GOOD, REFERENCE, TASK
from tests.lsp.test_session import RIGHT

OURS = {"click", "dask", "distributed", "lark", "msgpack", "nkic", "numpy", "pygls", "rich"}
NAMES = sorted((sys.stdlib_module_names | OURS) - {"__future__", "antigravity", "this"})
NKIC = (str(Path(sys.executable).with_name("nkic")),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of each name, which leaves a trace where it is imported."""
    for name in NAMES:
        path = tmp_path / f"{name}.py"
        path.write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n{GOOD}")
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "reference.py").write_text(REFERENCE)
    return tmp_path


@pytest.mark.parametrize("place", [("-j", "2"), ("--cluster", "local:1")])
def test_a_judge_imports_no_candidate(folder: Path, place: tuple[str, ...]) -> None:
    words = ("task.toml", "random.py", "numpy.py", "--no-families", "--jsonl", "-", "-q", *place)
    ended = subprocess.run(
        (*NKIC, "evaluate", *words), cwd=folder, capture_output=True, text=True, check=False
    )
    assert not (folder / "imported").exists()
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(each["candidate"], each["correct"]) for each in found] == [
        ("random.py", True),
        ("numpy.py", True),
    ]


def test_commands_of_an_editor_import_no_neighbour_of_a_kernel(folder: Path) -> None:
    kernel = folder / "kernel.py"
    kernel.write_text(RIGHT)
    said, costs = asyncio.run(lsp_server.ran(str(kernel)))
    assert said.startswith("add: ") and costs
    assert not (folder / "imported").exists()


LATER = ("click", "json", "mmap", "msgpack", "multiprocessing", "numpy", "random", "tempfile")


@pytest.mark.parametrize("path", [":{0}", "{0}:", "{0}::{0}"])
def test_an_empty_entry_of_the_path_is_not_the_current_folder(folder: Path, path: str) -> None:
    """Of the modules that Python itself does not need before a command begins."""
    for name in NAMES:
        if name not in LATER:
            (folder / f"{name}.py").unlink()
    environ = {**os.environ, "PYTHONPATH": path.format(folder / "none")}
    (command, *_), words = NKIC, ("evaluate", "task.toml", "random.py", "--time-only", "-q")
    ended = subprocess.run((command, *words), cwd=folder, env=environ, check=False)
    assert ended.returncode == 0
    assert not (folder / "imported").exists()
