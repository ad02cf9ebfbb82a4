"""A current directory with a kernel in it, and runs of nkic there."""

import os
from pathlib import Path

import pytest

from nkic.cli.common import run
from nkic.cli.nkic import command
from tests.harness.commands import KERNEL, Ran, Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory with a kernel in it, isolated from the tester's settings."""
    for name in list(os.environ):
        if name.startswith(("NKI", "NEURON", "FORCE_COLOR", "CLICOLOR")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NKIC_CACHE", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


@pytest.fixture
def nkic(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command in this process."""

    def call(*words: str) -> Ran:
        capfd.readouterr()
        code = run(command, "nkic", words)
        return Ran(code, *capfd.readouterr())

    return call
