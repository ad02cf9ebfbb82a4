"""Limits on functions and files, the budget of each room, and modules that are pages of another."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.harness import trees
from tests.test_layers import PROJECT, ROOT, dotted

LONGEST_FUNCTION = 60  # lines of code
LONGEST_FILE, LONGEST_LINE = 800, 100
# Lines and files of each room of nkic/. A number falls with its room, as the test says. One that
# rises is written by hand, and its commit says what that bought.
BUDGET = {
    ".": (664, 4),
    "base": (3_911, 17),
    "machine": (9_551, 27),
    "source": (5_927, 14),
    "program": (1_773, 5),
    "interpret": (16_082, 45),
    "language": (14_470, 44),
    "specialise": (4_403, 12),
    "compiler": (9_407, 22),
    "prove": (2_875, 8),
    "artifact": (5_462, 16),
    "simulate": (18_108, 45),
    "report": (6_750, 19),
    "migrate": (6_993, 18),
    "api": (3_547, 13),
    "judge": (3_853, 10),
    "serve": (2_255, 7),
    "nki": (2_385, 11),
    "cli": (6_821, 28),
}
SLACK = 100  # lines that a budget may be above its room

# Short modules that only one other module of their room imports: they would be pages of it, but
# fence what few runs load.
FENCES = {
    "nkic.cli.nkic.proving": "the Python interface, which executes the file",
    "nkic.cli.nki_run.carry_out": "`--help` runs without the runner",
    "nkic.compiler.like": "NumPy, for `--like` alone",
    "nkic.nki.finder": "the hooks of Python's import, set when a script asks for them",
    "nkic.simulate.numerics": "the page of its functions, and what all run under",
    "nkic.simulate.semantics": "loads all modules of its folder",
}
SHORT = 150

PACKAGE = sorted(ROOT.rglob("*.py"))
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
    for node in functions(ast.walk(ast.parse(text))):
        lines = {line for line in code if node.lineno <= line <= (node.end_lineno or 0)}
        yield node.lineno, node.name, len(lines - docstring_lines(node))


def functions(nodes: Iterable[ast.AST], longer: int = 0) -> list[Function]:
    """Return the functions of more than `longer` lines, of whatever kind these are."""
    found = (node for node in nodes if isinstance(node, Function))
    return [node for node in found if (node.end_lineno or 0) - node.lineno >= longer]


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


def room_of(path: Path) -> str:
    """Return the room of a module; modules beside the rooms share one, `.`."""
    return path.relative_to(ROOT).parts[0] if path.parent != ROOT else "."


def test_every_room_has_a_budget() -> None:
    assert {room_of(path) for path in PACKAGE} == BUDGET.keys()


@pytest.mark.parametrize("room", BUDGET)
def test_a_room_keeps_its_budget(room: str) -> None:
    paths = [path for path in PACKAGE if room_of(path) == room]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in paths)
    most_lines, most_files = BUDGET[room]
    assert lines <= most_lines
    assert len(paths) <= most_files
    assert most_lines - lines <= SLACK, f"{room} has become smaller: its budget is {lines}"


def readers(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found: dict[str, set[str]] = {name: set() for name in trees}
    for reader, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.get(whole, found.get(node.module or "", set())).add(reader)
    return {name: those - {name} for name, those in found.items()}


def pages(lengths_of: Mapping[str, int], read_by: Mapping[str, set[str]]) -> dict[str, str]:
    """Return each short module that only one other of its room imports, and that module."""
    return {
        name: next(iter(those))
        for name, those in read_by.items()
        if lengths_of[name] < SHORT
        and len(those) == 1
        and next(iter(those)).split(".")[1:2] == name.split(".")[1:2]
    }


def test_a_module_is_a_subject_and_no_page_of_another() -> None:
    modules = [path for path in PACKAGE if "stdlib" not in path.parts]
    texts = {dotted(path): path.read_text("utf-8") for path in modules}
    read_by = readers({dotted(path): trees.tree(path) for path in modules})
    lengths_of = {name: len(text.splitlines()) for name, text in texts.items()}
    assert pages(lengths_of, read_by).keys() == FENCES.keys()


def test_a_page_of_another_module_is_seen() -> None:
    trees = {
        "nkic.a.one": ast.parse("from nkic.a import two\nfrom nkic.a.three import f"),
        "nkic.a.two": ast.parse("from nkic.a.three import g"),
        "nkic.a.three": ast.parse(""),
        "nkic.b.four": ast.parse("from nkic.b.five import h"),
        "nkic.b.five": ast.parse(""),
    }
    assert pages(dict.fromkeys(trees, 10), readers(trees)) == {
        "nkic.a.two": "nkic.a.one",
        "nkic.b.five": "nkic.b.four",
    }
    assert pages(dict.fromkeys(trees, SHORT), readers(trees)) == {}


def test_files_keep_the_limits() -> None:
    long_files, long_lines, long_functions = [], [], []
    for path in PACKAGE + TESTS:
        text, name = path.read_text("utf-8"), str(path.relative_to(PROJECT))
        lines = text.splitlines()
        long_files += [name] if len(lines) > LONGEST_FILE else []
        long_lines += [(name, n) for n, line in enumerate(lines, 1) if len(line) > LONGEST_LINE]
        if functions(trees.nodes(path), LONGEST_FUNCTION):  # few files need their lines counted
            long_functions += [(name, *f) for f in lengths(text) if f[2] > LONGEST_FUNCTION]
    assert (long_files, long_lines, long_functions) == ([], [], [])


def modules_of(words: str) -> list[Path]:
    """Return the modules that a row of docs/sizes.md names: `a/{b,c}.py` `d/*.py`."""
    found = []
    for pattern in re.findall(r"`([^`]+)`", words):
        before, _, rest = pattern.partition("{")
        names, _, after = rest.partition("}")
        for name in names.split(","):
            paths = [*ROOT.glob(f"{before}{name}{after}")]
            assert paths, f"docs/sizes.md names {before}{name}{after}, which does not exist"
            found += paths
    return found


def test_the_page_says_what_the_lines_buy() -> None:
    page = (PROJECT / "docs/sizes.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (`[^|]+) \| ([\d,]+) \|", page, re.MULTILINE)
    named = []
    for capability, words, stated in rows:
        modules = modules_of(words)
        named += modules
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in modules)
        said = int(stated.replace(",", ""))
        assert abs(said - lines) <= lines / 10, f"{capability}: {lines} lines"
    assert sorted(named) == PACKAGE
