"""A folder with a kernel in it, and the command run there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nkic.cli.common import run
from nkic.cli.nkic import command
from tests.harness.commands import KERNEL, Ran, Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with a kernel in it; no setting of the tester's own reaches in."""
    for name in list(os.environ):
        if name.startswith(("NKI", "NEURON", "FORCE_COLOR", "CLICOLOR")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NKIC_CACHE", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


@pytest.fixture
def nkic(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def call(*words: str) -> Ran:
        capfd.readouterr()
        code = run(command, "nkic", words)
        return Ran(code, *capfd.readouterr())

    return call
