"""Test with Python's own standard library: the same trees, positions and errors as `ast`."""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.source.parse import parse
from nkic.source.parser import decode
from tests.harness.compare_ast import differences

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
FILES = [p for p in sorted(LIBRARY.rglob("*.py")) if "site-packages" not in p.parts]
ALWAYS = ("test_grammar", "test_fstring", "test_patma", "test_type_params", "dataclasses")


def sample() -> list[Path]:
    """Return about 30 files, spread evenly, and those with the rarest syntax."""
    small = [path for path in FILES if path.stat().st_size < 60_000]
    rare = [path for path in FILES if path.stem in ALWAYS]
    return sorted({*small[:: max(len(small) // 28, 1)], *rare})


def complaints(paths: list[Path]) -> Iterator[str]:
    """Return the differences between nkic's tree and Python's."""
    for path in paths:
        yield from (f"{path.name}: {text}" for text in complaints_of(path.read_bytes()))


def complaints_of(data: bytes) -> list[str]:
    source, ours, refusal = None, None, ""
    try:
        source = decode(data, "file.py")
        ours = parse(source)
    except CompileFailed as failed:
        refusal = failed.diagnostics[0].message
    theirs = python_tree(data)
    if source is None or ours is None or theirs is None:
        same = ours is None and theirs is None
        return [] if same else [f"refused by {'Python' if ours else 'us'}: {refusal}"]
    return list(differences(ours, source.text, theirs))[:5]


def python_tree(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError):
            return None


def test_a_sample_of_the_library_parses_as_in_python() -> None:
    paths = sample()
    assert len(paths) >= 25
    assert list(complaints(paths)) == []


@pytest.mark.slow
def test_the_whole_library_parses_as_in_python() -> None:
    assert len(FILES) > 500
    assert list(complaints(FILES)) == []


def test_a_difference_would_be_seen() -> None:
    source = SourceFile("k.py", "x = (a, b)\n")
    for other in ("x = (a, c)\n", "x = (a , b)\n", "x = [a, b]\n", "x = (a, b, b)\n"):
        assert list(differences(parse(source), source.text, ast.parse(other)))
    assert not list(differences(parse(source), source.text, ast.parse(source.text)))


def test_names_in_other_scripts_have_columns_in_code_points() -> None:
    source = SourceFile("k.py", "é = 'ü' + ﬁx.ñ  # — \nnext\n")
    assert list(differences(parse(source), source.text, ast.parse(source.text))) == []
