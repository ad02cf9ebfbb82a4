"""Test finding a page by any of its names, and the nearest page for an unknown name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.base import levels
from nkic.base.diagnostics import UsageFailed, codes
from nkic.base.levels import OFF_BY_DEFAULT
from tests.harness import trees


@pytest.mark.parametrize(
    "wanted",
    ["NKI0006", "nki0006", "0006", "6", " 0006 ", "cannot-write", "Cannot-Write", "cannot_write"],
)
def test_a_code_has_many_names(wanted: str) -> None:
    assert levels.find(wanted).slug == "cannot-write"
    assert levels.page(wanted).startswith(
        "# NKI0006 cannot-write: An output file cannot be written\n"
    )


def test_title_is_the_first_line_without_its_mark() -> None:
    assert levels.title(codes()["unknown-option"]) == "Unknown option"


def test_the_page_follows_its_head_unchanged() -> None:
    file = levels.FOLDER / "NKI9001-internal-error.md"
    head, rest = levels.page("9001").split("\n", 1)
    assert head == "# NKI9001 internal-error: Internal error"
    assert rest == file.read_text(encoding="utf-8").split("\n", 1)[1]


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("canot-write", "cannot-write"),
        ("write-cannot", "cannot-write"),
        ("internal-eror", "internal-error"),
    ],
)
def test_unknown_code_gets_the_nearest(wanted: str, near: str) -> None:
    with pytest.raises(UsageFailed) as raised:
        levels.page(wanted)
    (found,) = raised.value.diagnostics
    assert found.code.slug == "unknown-code"
    assert f"`{wanted}`" in found.message
    assert f"did you mean `{near}`" in found.help


@pytest.mark.parametrize("wanted", ["", "zzzzzzzzzzzz", "../secret", "\x00", "E0308"])
def test_a_name_near_to_nothing_gets_no_guess(wanted: str) -> None:
    with pytest.raises(UsageFailed) as raised:
        levels.page(wanted)
    assert raised.value.diagnostics[0].help == "`--explain all` prints every page"


def test_all_pages_in_the_order_of_their_numbers() -> None:
    heads = [line for line in levels.page("all").splitlines() if line.startswith("# NKI")]
    assert len(heads) == len(codes())
    assert heads == sorted(heads)


# ------------------------------------------------------------------------------------------------
# docs/errors.md lists every warning with its title, and nothing else.

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
