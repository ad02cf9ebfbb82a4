"""Test the pages of diagnostic codes.

Every code has a page in one format, every page is used, and every number has one meaning. The wrong
example of a page raises exactly its code, and the right example compiles.
"""

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.base.diagnostics import Diagnostic
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as nkic
from tests.harness import trees
from tests.harness.bless import blessing
from tests.harness.kernels import compile_text

ROOT = Path(__file__).resolve().parents[1] / "nkic"
HISTORY = Path(__file__).with_name("data") / "codes.txt"
PAGES = sorted((ROOT / "base" / "explain").iterdir())
FAMILIES = {"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "90"}
REPORTING = {"error", "warning", "fatal", "make"}  # their first argument is a slug
SECTIONS = ("## Why", "## Wrong", "## Right")
NOT_SHOWN = "Example: "


def slug_of(page: Path) -> str:
    return page.stem.split("-", 1)[1]


def modules() -> list[Path]:
    """Return the package's modules; stdlib/ is kernel source and reports nothing."""
    return [path for path in trees.FILES if "stdlib" not in path.parts]


def reported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return the line and slug of each report whose first argument is a literal, or chooses among
    literals.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and name_of(node.func) in REPORTING:
            yield from ((node.lineno, slug) for slug in literals(node.args[0]))


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def literals(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_the_search_finds_reports() -> None:
    source = "r.error('a', m)\nmake('b' if x else 'c', m)\nr.error(slug, m)\nlog('d')\nmake(1)"
    assert sorted(reported(ast.parse(source))) == [(1, "a"), (2, "b"), (2, "c")]


def test_every_reported_slug_has_a_page() -> None:
    known = {slug_of(page) for page in PAGES}
    found = [(path, line, slug) for path in modules() for line, slug in reported(trees.tree(path))]
    assert len(found) > 10
    assert [row for row in found if row[2] not in known] == []


def test_every_page_is_used() -> None:
    """Slugs that are passed to a report through a table or a variable count too."""
    nodes = (node for path in modules() for node in trees.nodes(path))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert [page.name for page in PAGES if slug_of(page) not in texts] == []


@pytest.mark.parametrize("part", ["number", "slug"])
def test_no_number_and_no_slug_is_used_twice(part: str) -> None:
    names = (page.stem.split("-", 1)[part == "slug"] for page in PAGES)
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_numbers_keep_their_meaning() -> None:
    """The history only grows: a number belongs to its slug for ever, also after its page is
    removed. `make bless` adds new numbers.
    """
    given = dict(line.split(" ", 1) for line in HISTORY.read_text("utf-8").splitlines())
    now = dict(page.stem.split("-", 1) for page in PAGES)
    assert {number: slug for number, slug in now.items() if given.get(number, slug) != slug} == {}
    assert len(set(given.values())) == len(given)
    if blessing():
        lines = (f"{number} {slug}\n" for number, slug in sorted({**now, **given}.items()))
        HISTORY.write_text("".join(lines), "utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_the_format(page: Path) -> None:
    assert re.fullmatch(r"NKI\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md", page.name)
    assert page.name[3:5] in FAMILIES
    text = page.read_text("utf-8")
    assert text.endswith("\n")
    title, meaning = text.split("## Why")[0].split("\n", 1)
    assert re.fullmatch(r"# \S.{2,77}[^.\s]", title)
    assert meaning.strip(), "the meaning, between the title and ## Why, is missing"
    assert "\n\n" not in meaning.strip(), "the meaning is one paragraph"
    assert not re.search(r"(?<!\w)/(work|tmp)/", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_the_sections(page: Path) -> None:
    text = page.read_text("utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert section(text, "## Why").strip()
    if NOT_SHOWN in text:
        assert "## Wrong" not in headings
        assert re.search(rf"^{NOT_SHOWN}\S", text, re.MULTILINE)
        assert re.search(r"^Right: \S", text, re.MULTILINE)
        return
    assert [heading for heading in headings if heading in SECTIONS] == [*SECTIONS]
    wrong, right = example(text, "## Wrong"), example(text, "## Right")
    assert wrong != right
    ast.parse(right)


COMMANDS = {"nkic": nkic, "nki-run": nki_run}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_right_have_options_that_exist(page: Path) -> None:
    right = "".join(re.findall(r"^Right: .*$", page.read_text("utf-8"), re.MULTILINE))
    for words in re.findall(r"`((?:nkic|nki-run) [^`]*)`", right):
        for part in re.split(r"[|;]", words):
            tool, *rest = shlex.split(part)
            command = COMMANDS[tool].commands.get(rest[0], COMMANDS[tool])
            known = {name for option in command.table for name in option.opts}
            known |= {name for option in command.table for name in option.secondary_opts}
            assert [word for word in rest if word[:1] == "-" != word and word not in known] == []


def section(text: str, heading: str) -> str:
    _, found, rest = f"\n{text}".partition(f"\n{heading}\n")
    assert found, f"{heading} is missing"
    return rest.split("\n## ")[0]


def example(text: str, heading: str) -> str:
    """Return the only Python block of a section."""
    blocks = re.findall(r"^```python\n(.*?)^```$", section(text, heading), re.M | re.S)
    assert len(blocks) == 1, f"{heading} needs one block of Python"
    return str(blocks[0])


# Examples are short: they need not use all that they read and compute.
IDLE = {"input-not-read", "input-partly-read", "result-not-read"}


def compiled(page: Path, heading: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of an example, with those that are off by default and its subject."""
    slug = slug_of(page)
    said = compile_text(example(page.read_text("utf-8"), heading), warn=slug)
    return tuple(one for one in said if one.code.slug not in IDLE - {slug})


SHOWN = [page for page in PAGES if NOT_SHOWN not in page.read_text("utf-8")]


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_wrong_example_raises_exactly_this_code(page: Path) -> None:
    said = compiled(page, "## Wrong")
    assert {one.code.slug for one in said} == {slug_of(page)}, shown(said)


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_right_example_compiles(page: Path) -> None:
    said = compiled(page, "## Right")
    assert said == (), shown(said)


def shown(said: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{one.code.number} {one.code.slug}: {one.message}" for one in said]
