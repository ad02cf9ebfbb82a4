"""Test which modules a run of a kernel loads if only its outputs are requested."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from nkic.cli.common.main import bind_lazily
from nkic.cli.nki_run import LAZY_MODULES
from tests.cli.nki_run_fixtures import artifact, folder

__all__ = ["artifact", "folder"]

LOADED = """
import sys, types
from nkic.cli.nki_run import main
sys.argv[0] = "nki-run"
code = main()
names = [name for name, module in sys.modules.items() if type(module) is types.ModuleType]
print(code, *names, file=sys.stderr)
"""
# The modules that a plain run loads of the rooms for rare requests.
PLAIN = {
    "nkic.cli": {
        *("common", "common.main", "common.options", "common.session", "common.streams"),
        *("common.tool", "nki_run", "nki_run.carry_out", "nki_run.options", "nki_run.outputs"),
        "nki_run.running",
    },
    "nkic.report": {
        *("costs", "critical", "figures", "questions", "resources", "run_report", "shorter"),
        "verdict",
    },
    "nkic.api": set[str](),
    "nkic.migrate": set[str](),
}


def loaded(folder: Path, *words: str) -> list[str]:
    tool, *options = words
    artifact = str(folder / "kernel.neff")
    words = (artifact, *words) if tool.startswith("-") else (tool, artifact, *options)
    command = [sys.executable, "-c", LOADED, *words]
    found = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    code, *names = found.stderr.splitlines()[-1].split()
    assert code == "0", found.stderr
    return names


def test_a_plain_run_loads_no_more_than_it_needs(folder: Path) -> None:
    names = loaded(folder, "--fill", "zeros")
    for room, wanted in PLAIN.items():
        found = {n.removeprefix(f"{room}.") for n in names if n.startswith(f"{room}.")}
        assert found == wanted, room
    assert not set(names) & set(LAZY_MODULES)


def test_looking_at_a_file_loads_no_simulator(folder: Path) -> None:
    names = loaded(folder, "inspect")
    assert not [n for n in names if n.split(".")[0] == "numpy" or n.startswith("nkic.simulate")]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("profile",), "nkic.cli.nki_run.reporting"),
        (("debug", "--changes", "a"), "nkic.cli.nki_run.debugging"),
        (("debug", "--fuzz-order", "1"), "nkic.cli.nki_run.debugging"),
        (("inspect",), "nkic.cli.nki_run.inspecting"),
    ],
)
def test_what_is_asked_for_is_loaded(folder: Path, words: tuple[str, ...], name: str) -> None:
    fill = () if words == ("inspect",) else ("--fill", "zeros")
    assert name in loaded(folder, *words, *fill)


def test_a_module_is_bound_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "rare_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("loaded = True")
    monkeypatch.syspath_prepend(tmp_path)
    bind_lazily(["rare_package.part"])
    import rare_package  # type: ignore[import-not-found]

    assert type(rare_package.part) is not types.ModuleType
    assert rare_package.part.loaded
    assert type(rare_package.part) is types.ModuleType
