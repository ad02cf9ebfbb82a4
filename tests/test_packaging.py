"""Test the built packages: types and stubs in the wheel, all files that the tests need in the
source archive.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest

from nkic import __version__
from nkic.nki import stubs

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (".ci", ".github", "course", "docs", "grammar", "nkic", "samples", "tests")
FILES = (
    *("MANIFEST.in", "Makefile", "pyproject.toml", "Dockerfile", "action.yml"),
    ".pre-commit-hooks.yaml",
)
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


@pytest.mark.slow  # builds a wheel, and makes a virtual environment
def test_an_installed_wheel_has_both_commands(project: Path, tmp_path: Path) -> None:
    """Nothing of the checkout is used: only what the wheel requires is taken from here."""
    built(project, "bdist_wheel", "--dist-dir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"nkic-{__version__}-py3-none-any.whl"
    venv.create(tmp_path / "v", with_pip=True)

    def said(name: str, *words: str) -> str:
        ran = subprocess.run(
            [tmp_path / "v/bin" / name, *words],
            cwd=tmp_path,
            env={"PATH": "", "HOME": str(tmp_path), "NKIC_CACHE": "0"},
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return ran.stdout

    said("python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    # A plain path, in which files *.pth do not count: the checkout is not found through it.
    (site,) = (tmp_path / "v/lib").glob("*/site-packages")
    (site / "required.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    assert said("python", "-c", "import nkic; print(nkic.__file__)").startswith(str(site))
    assert said("nkic", "--version") == f"nkic {__version__}\n"
    kernel = str(ROOT / "samples/01_tensor_add/kernel.py")
    said("nkic", kernel, "-o", "k.neff")
    assert said("nki-run", "inspect", "k.neff", "--check", "--json")
    assert json.loads(said("nki-run", "k.neff", "--fill", "randn(0)", "--json"))["cycles"] > 0
    assert re.search(r"(?m)^zeros +\(shape", said("nkic", "--print", "language"))
    assert said("nkic", "--explain", "NKI0501").startswith("# NKI0501 sbuf-overflow: ")
    assert (site / "nkic/py.typed").is_file() and (site / "nkic/stubs/nki/language.pyi").is_file()


def test_the_version_is_in_one_place() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["dynamic"] == ["version"] and "version" not in settings["project"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "nkic.__version__"}


def test_options_of_extras_are_in_dev() -> None:
    """CI installs `dev`, so it must have whatever an option of a command needs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = extras["optional-dependencies"]
    known = set(groups["dev"])
    for name in ("cluster", "lsp", "migrate", "parquet", "perfetto", "serve", "tune", "watch"):
        assert set(groups[name]) <= known, name
