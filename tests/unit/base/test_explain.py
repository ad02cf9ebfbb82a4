"""Test finding a page by any of its names, and the nearest page for an unknown name."""

import pytest

from nkic.base import levels
from nkic.base.diagnostics import UsageFailed, codes


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
