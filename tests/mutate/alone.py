"""Run a mutant in a separate process, in a copy of the project: for code that runs on import."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutate.drawing import Mutant
from tests.mutate.rooms import ROOT

KEPT = ("nkic", "tests", "samples", "grammar", "docs")
TIMEOUT = 240  # seconds: a mutant that takes longer counts as killed


def copied(project: Path) -> None:
    """Copy the project's files."""
    for name in KEPT:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "CHANGELOG.md"):
        shutil.copy(ROOT / name, project / name)


def failing(tests: tuple[str, ...], project: Path) -> str:
    """Return the first of the tests that fails in the copy of the project; nothing if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "--no-header", *tests]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no end in sight"
    if done.returncode == 0:
        return ""
    found = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0].split(" - ")[0] if found else "pytest itself"


def judged(mutant: Mutant, project: Path) -> str:
    """Return the test that kills the mutant; nothing if none does."""
    module = project / mutant.path
    before = module.read_bytes()
    module.write_text(mutant.text, "utf-8")
    try:
        return failing(mutant.tests, project)
    finally:
        module.write_bytes(before)
