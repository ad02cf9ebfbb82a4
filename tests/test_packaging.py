"""Test the built packages: types and stubs in the wheel, all files that the tests need in the
source archive.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from nkic.nki import stubs

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "grammar", "nkic", "samples", "tests")
FILES = ("MANIFEST.in", "Makefile", "pyproject.toml")
SETUP = "import setuptools, sys; sys.argv[0] = 'setup.py'; setuptools.setup()"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project, since building writes beside the sources."""
    copy = tmp_path_factory.mktemp("project")
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc", "build", "*.egg-info")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=left_out)
    for file in (*ROOT.glob("*.md"), ROOT / "LICENSE", *(ROOT / name for name in FILES)):
        shutil.copy(file, copy)
    return copy


def built(project: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-c", SETUP, "-q", *words],
        cwd=project,
        check=True,
        capture_output=True,
        timeout=300,
    )


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_stubs_are_those_of_the_tables() -> None:
    """`make stubs` writes them."""
    folder = ROOT / "nkic" / "stubs"
    assert {name: (folder / name).read_text("utf-8") for name in files(folder)} == stubs.texts()


def test_what_is_installed(project: Path, tmp_path: Path) -> None:
    built(project, "build_py", "--build-lib", str(tmp_path))
    found = files(tmp_path)
    wanted = {"nkic/py.typed", *(f"nkic/stubs/{name}" for name in stubs.texts())}
    wanted |= {f"nkic/base/explain/{page.name}" for page in (ROOT / "nkic/base/explain").iterdir()}
    assert wanted - found == set()
    assert {name.split("/")[0] for name in found} == {"nkic"}
    code = {name for name in files(project / "nkic") if name.endswith(".py")}
    assert {f"nkic/{name}" for name in code} - found == set()


def test_what_is_in_the_source_archive(project: Path, tmp_path: Path) -> None:
    built(project, "sdist", "--dist-dir", str(tmp_path))
    (path,) = tmp_path.iterdir()
    with tarfile.open(path) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    kept = {f"{folder}/{name}" for folder in FOLDERS for name in files(project / folder)}
    kept |= {"README.md", "CHANGELOG.md", "LICENSE", *FILES}
    assert kept - found == set()
