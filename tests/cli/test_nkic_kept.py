"""Repeated runs of `nkic`: artifacts and messages are reused if nothing has changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from nkic.base.source import SourceFile
from nkic.compiler import pipeline
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, Run

__all__ = ["folder", "nkic"]
IMPORTING = KERNEL.replace("import nki\n", "import nki\nfrom factors import FACTOR\n").replace(
    "operand0=factor", "operand0=FACTOR"
)
# A kernel that prints, and a warning with a location.
WARNED = KERNEL.replace(
    "    return out", "    print('a', a.shape)\n    return out  # nkic: ignore[05]"
)


@pytest.fixture
def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the cache enabled."""
    monkeypatch.delenv("NKIC_CACHE")
    monkeypatch.setenv("NKIC_CACHE_DIR", str(folder / "kept"))
    return folder


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the kernels that are compiled and not taken from the cache."""
    found: list[str] = []
    real = pipeline.compile_source

    def compile_source(source: SourceFile, *rest: Any) -> object:
        found.append(str(source))
        return real(source, *rest)

    monkeypatch.setattr(pipeline, "compile_source", compile_source)
    return found


def test_a_second_call_writes_the_same(kept: Path, nkic: Run, compiles: list[str]) -> None:
    first = nkic("k.py", "-v")
    wanted = (kept / "k.neff").read_bytes()
    (kept / "k.neff").unlink()
    assert nkic("k.py", "-v") == first
    assert (kept / "k.neff").read_bytes() == wanted
    assert len(compiles) == 1
    assert first.code == 0 and "wrote k.neff" in first.err


@pytest.mark.parametrize("form", ["human", "json", "short", "github"])
def test_warnings_and_prints_are_said_again(
    kept: Path, nkic: Run, compiles: list[str], form: str
) -> None:
    (kept / "k.py").write_text(WARNED, "utf-8")
    words = ("k.py", "--message-format", form, "--message-file", "said")
    first = nkic(*words)
    told = (kept / "said").read_bytes()
    assert "unused-ignore" in first.err or "NKI" in first.err
    assert "a (128, 64)" in first.err
    assert nkic(*words) == first
    assert (kept / "said").read_bytes() == told
    assert len(compiles) == 1


def test_a_denied_warning_is_an_error_again(kept: Path, nkic: Run) -> None:
    (kept / "k.py").write_text(WARNED, "utf-8")
    assert nkic("k.py").code == 0
    assert nkic("k.py", "-Werror").code == 1
    assert nkic("k.py", "-Werror").code == 1


CHANGES = {
    "the source": lambda here: (here / "k.py").write_text(KERNEL.replace("2.0", "3.0")),
    "a comment": lambda here: (here / "k.py").write_text(KERNEL + "# more\n"),
    "a project": lambda here: (here / "pyproject.toml").write_text("[tool.nkic]\nnki = '0.6'\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_compiled(kept: Path, nkic: Run, compiles: list[str], what: str) -> None:
    nkic("k.py")
    CHANGES[what](kept)
    assert nkic("k.py").code == 0
    assert len(compiles) == 2


@pytest.mark.parametrize(
    "words",
    [
        *(("--const", "factor=3.0"), ("--target", "trn1"), ("--serial",), ("-O", "2")),
        *(("-W", "06"), ("-o", "other.neff"), ("--limit", "steps=100000"), ("--embed-source",)),
        *(("--no-cache",), ("--time",), ("--fail-if", "sbuf_peak>90%"), ("--emit", "neff")),
    ],
)
def test_other_words_are_compiled(
    kept: Path, nkic: Run, compiles: list[str], words: tuple[str, ...]
) -> None:
    nkic("k.py")
    assert nkic("k.py", *words).code == 0
    assert len(compiles) == 2


def test_the_environment_counts(
    kept: Path, nkic: Run, compiles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nkic("k.py")
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    nkic("k.py")
    monkeypatch.setenv("NKIC_CACHE", "0")
    nkic("k.py")
    assert len(compiles) == 3


def test_imports_count(kept: Path, nkic: Run, compiles: list[str]) -> None:
    (kept / "k.py").write_text(IMPORTING, "utf-8")
    (kept / "factors.py").write_text("FACTOR = 2.0\n", "utf-8")
    assert [nkic("k.py").code for _ in "12"] == [0, 0]
    assert len(compiles) == 1
    first = (kept / "k.neff").read_bytes()
    (kept / "factors.py").write_text("FACTOR = 4.0\n", "utf-8")
    assert nkic("k.py").code == 0
    assert (kept / "k.neff").read_bytes() != first
    # A package of the same name takes precedence over the file.
    (kept / "factors").mkdir()
    (kept / "factors/__init__.py").write_text("FACTOR = 8.0\n", "utf-8")
    assert nkic("k.py").code == 0
    assert len(compiles) == 3


def test_other_files_count(kept: Path, nkic: Run, compiles: list[str]) -> None:
    (kept / "m.toml").write_text("", "utf-8")
    words = ("k.py", "--machine", "m.toml")
    assert [nkic(*words).code for _ in "12"] == [0, 0]
    assert len(compiles) == 1
    (kept / "m.toml").write_text("# other\n", "utf-8")
    nkic(*words)
    assert len(compiles) == 2


def test_an_entry_that_is_damaged_is_replaced(kept: Path, nkic: Run, compiles: list[str]) -> None:
    nkic("k.py")
    (entry,) = (kept / "kept").iterdir()
    entry.write_bytes(entry.read_bytes()[:-3])
    nkic("k.py")
    nkic("k.py")
    assert len(compiles) == 2


def test_failures_are_not_kept(kept: Path, nkic: Run) -> None:
    (kept / "k.py").write_text(KERNEL.replace("nl.multiply", "nl.multiplied"), "utf-8")
    assert nkic("k.py").code == 1
    assert not list((kept / "kept").iterdir())


def test_a_folder_in_which_others_may_write_is_refused(kept: Path, nkic: Run) -> None:
    (kept / "kept").mkdir()
    (kept / "kept").chmod(0o777)
    ran = nkic("k.py")
    assert ran.code == 2 and "can be written by others" in ran.err


def test_an_output_that_became_an_input(kept: Path, nkic: Run) -> None:
    nkic("k.py", "-o", "x.py")
    (kept / "x.py").unlink()
    os.link(kept / "k.py", kept / "y.py")
    (kept / "x.py").symlink_to("k.py")
    ran = nkic("k.py", "-o", "x.py")
    assert ran.code == 2
    assert (kept / "k.py").read_text("utf-8") == KERNEL


def test_no_source_of_the_kernel_is_executed(kept: Path, nkic: Run) -> None:
    (kept / "k.py").write_text(f"open('pwned', 'w')\n{KERNEL}", "utf-8")
    assert [nkic("k.py").code for _ in "12"] == [0, 0]
    assert not (kept / "pwned").exists()
