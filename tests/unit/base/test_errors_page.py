"""docs/errors.md lists every warning with its title, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from nkic.base import levels
from nkic.base.diagnostics import codes
from nkic.base.levels import OFF_BY_DEFAULT
from tests.harness import trees

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "errors.md").read_text("utf-8")
# Warnings of a run, not of a kernel, which the report of the run explains.
OF_RUNS = {"input-cast"}  # besides those that both tools report


def listed() -> list[tuple[str, str, str]]:
    table = PAGE.partition("<!-- warnings: begin -->\n")[2].partition("\n<!-- warnings: end -->")[0]
    return re.findall(r"^\| (NKI\d{4}) \| ([a-z0-9-]+) \| (.*) \|$", table, re.MULTILINE)


def said() -> Iterator[str]:
    """Return the slugs that the package reports as warnings, if they are literals."""
    for path in sorted((ROOT / "nkic").rglob("*.py")):
        if "stdlib" in path.parts:
            continue
        text = path.read_text("utf-8")
        if "warning(" not in text and "Level.WARNING" not in text:
            continue
        for node in trees.nodes(path):
            if isinstance(node, ast.Call) and node.args and is_warning(node):
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def is_warning(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    level = (word.value for word in call.keywords if word.arg == "level")
    return name == "warning" or any(ast.unparse(value) == "Level.WARNING" for value in level)


def test_every_row_is_a_code_with_its_title() -> None:
    known = {code.number: code for code in codes().values()}
    for number, slug, title in listed():
        assert known[number].slug == slug
        assert title.startswith(levels.title(known[number]))


def test_every_warning_is_listed() -> None:
    slugs = {slug for _, slug, _ in listed()}
    found = set(said()) - OF_RUNS
    assert len(found) > 6
    assert found <= slugs
    assert slugs >= OFF_BY_DEFAULT


def test_what_is_off_is_told() -> None:
    (line,) = re.findall(r"^(NKI.*) are off by default", PAGE, re.MULTILINE)
    numbers = {code.number for slug, code in codes().items() if slug in OFF_BY_DEFAULT}
    assert set(re.findall(r"NKI\d{4}", line)) == numbers
