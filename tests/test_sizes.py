"""Limits on the size of functions and files, and the budget of the whole package."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
LONGEST_FUNCTION = 60  # lines of code
LONGEST_FILE, LONGEST_LINE = 800, 100
# The size of nkic/. A change that needs more raises a number, and its commit says what that bought.
MOST_LINES, MOST_FILES, MOST_ROOMS = 124_155, 803, 38

PACKAGE = sorted((PROJECT / "nkic").rglob("*.py"))
# Kernels in the style of users, with long lines.
KERNELS = {"authors", "files", "cases", "expected", "beta1", "expected_beta1"}
TESTS = [
    path
    for path in sorted((PROJECT / "tests").rglob("*.py"))
    if not KERNELS.intersection(path.parts)
]

Function = ast.FunctionDef | ast.AsyncFunctionDef
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lengths(text: str) -> Iterator[tuple[int, str, int]]:
    """Return the line, name and lines of code of each function, without docstring, comments and
    blank lines.
    """
    code = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            lines = {line for line in code if node.lineno <= line <= (node.end_lineno or 0)}
            yield node.lineno, node.name, len(lines - docstring_lines(node))


def code_lines(text: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = ((t.start[0], t.end[0]) for t in tokens if t.type not in LAYOUT)
    return {line for first, last in spans for line in range(first, last + 1)}


def docstring_lines(node: Function) -> set[int]:
    if ast.get_docstring(node, clean=False) is None:
        return set()
    return set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))


def test_only_code_counts() -> None:
    text = (
        'def f(\n    a\n):\n    """Doc.\n\n    More."""\n    # why\n\n    return """x\n    y"""\n'
    )
    assert [*lengths(text)] == [(1, "f", 5)]


def test_package_keeps_its_budget() -> None:
    rooms = {path.parent for path in PACKAGE if path.parent.parent == PROJECT / "nkic"}
    assert sum(len(path.read_text("utf-8").splitlines()) for path in PACKAGE) <= MOST_LINES
    assert len(PACKAGE) <= MOST_FILES
    assert len(rooms) <= MOST_ROOMS


@pytest.mark.parametrize("path", PACKAGE + TESTS, ids=lambda p: str(p.relative_to(PROJECT)))
def test_file_keeps_the_limits(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    assert len(lines) <= LONGEST_FILE
    assert [n for n, line in enumerate(lines, 1) if len(line) > LONGEST_LINE] == []
    assert [row for row in lengths(text) if row[2] > LONGEST_FUNCTION] == []
