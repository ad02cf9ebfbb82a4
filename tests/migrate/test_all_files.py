"""Migrate every kernel file of the tests twice, including those with errors."""

from pathlib import Path

import libcst as cst
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.migrate.facts import Facts
from nkic.migrate.stage import migrate
from nkic.source.parse import parse

ROOT = Path(__file__).parents[1]
SAMPLES = sorted((ROOT.parent / "samples").glob("*/kernel.py"))


def sources(paths: list[Path]) -> list[Path]:
    """Return the files that nkic parses."""
    found = []
    for path in paths:
        try:
            parse(SourceFile(path.name, path.read_text("utf-8")))
        except CompileFailed:
            continue
        found.append(path)
    return found


FOLDERS = ("removed", "device_loops", "language", "scalars")
LIKE = ("meta", "scalars")  # reach no line of nkic/migrate that the others do not
FILES = [
    pytest.param(path, marks=[pytest.mark.slow] * (path.parent.name in LIKE))
    for folder in FOLDERS
    for path in sources(sorted((ROOT / "files" / folder).rglob("*.py")))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_migrating_twice_changes_nothing(path: Path) -> None:
    source = SourceFile(path.name, path.read_text("utf-8"))
    once = migrate(source, Facts(), None, Profile.NKI_0_7).text
    assert migrate(SourceFile(path.name, once), Facts(), None, Profile.NKI_0_7).text == once
    cst.parse_module(once)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_what_is_of_today_stays(path: Path) -> None:
    source = SourceFile(path.name, path.read_text("utf-8"))
    made = migrate(source, Facts(), None, Profile.NKI_0_7)
    assert (made.text, made.left) == (source.text, ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ends_of_lines_stay(end: str) -> None:
    text = (
        "import nki.language as nl\n\n\ndef f():\n    for i in nl.dynamic_range(3):\n        g(i)\n"
    )
    made = migrate(SourceFile("k.py", text.replace("\n", end)), Facts(), None, Profile.NKI_0_7)
    assert "nl.fori_loop(0, 3, body)" in made.text
    assert made.text.count(end) == made.text.count("\n") == 8


def test_an_earlier_goal_keeps_what_it_has() -> None:
    text = "import nki.language as nl\nfor i in nl.affine_range(3):\n    nl.tile_size.psum_fmax\n"
    made = migrate(SourceFile("k.py", text), Facts(), None, Profile.NKI_0_5).text
    assert made == text.replace("psum_fmax", "psum_bank_fmax")


def test_a_missing_import_is_added() -> None:
    text = "import os\nfrom nki.isa import register_move\n\nnl = 3\nregister_move(r, imm=3)\n"
    made = migrate(SourceFile("k.py", text), Facts(), None, Profile.NKI_0_7).text
    assert "register_move\nimport nki.isa as nisa\n\nnl = 3\n" in made
    assert "register_move(r, src=nisa.register_alloc(3))" in made


def test_a_range_with_keywords_stays() -> None:
    text = "import nki.language as nl\nnl.affine_range(stop=3)\nnl.affine_range(3, directives=d)\n"
    made = migrate(SourceFile("k.py", text), Facts(), None, Profile.NKI_0_7).text
    assert made == "import nki.language as nl\nnl.affine_range(stop=3)\nrange(3)\n"


@pytest.mark.parametrize("head", ["import nki\n", "import neuronxcc.nki as nki\n", ""])
def test_a_framework_s_decorator_becomes_nki_s(head: str) -> None:
    text = f"from torch_neuronx import nki_jit\n{head}\n\n@nki_jit\ndef f(a):\n    pass\n"
    made = migrate(SourceFile("k.py", text), Facts(), None, Profile.NKI_0_7).text
    assert made.count("import nki\n") == 1
    assert "\n@nki.jit\ndef f" in made


def test_a_constant_is_converted_by_numpy() -> None:
    text = "import nki.language as nl\nc = nl.shared_constant(a + b, dtype=v.dtype)\n"
    made = migrate(SourceFile("k.py", text), Facts(), None, Profile.NKI_0_7).text
    assert made.endswith("c = nl.shared_constant((a + b).astype(v.dtype))\n")


def test_python_that_the_library_cannot_read_is_refused() -> None:
    with pytest.raises(CompileFailed) as found:
        migrate(SourceFile("k.py", "a = (\n"), Facts(), None, Profile.NKI_0_7)
    assert found.value.diagnostics[0].code.slug == "not-migrated"
