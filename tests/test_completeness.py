"""Every row of the instruction table has all that a row must have, and nothing else has."""

from __future__ import annotations

from pathlib import Path

import pytest

import nkic.simulate  # registers the semantics  # noqa: F401
from nkic.machine.instructions import ROWS
from nkic.simulate.decode import MEETINGS, SEMANTICS

PROJECT = Path(__file__).resolve().parents[1]


def test_rows_and_semantics_are_the_same_set() -> None:
    assert sorted([*SEMANTICS, *MEETINGS]) == sorted(ROWS)
    assert sorted(MEETINGS) == sorted(name for name, row in ROWS.items() if row.meets)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_says_what_it_does_and_where_that_is_known_from(name: str) -> None:
    row = ROWS[name]
    assert row.doc.endswith(".") and len(row.doc) > 10
    assert row.source.startswith(("nki.isa", "nki.language", "NKI"))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_tested_by_value(name: str) -> None:
    """Some test of semantics, or a sample for the registers, names the instruction."""
    tests = [
        *(PROJECT / "tests/unit").glob("test_semantics*.py"),
        PROJECT / "tests/unit/test_machine.py",
        PROJECT / "tests/unit/test_cores.py",
    ]
    assert any(f'"{name}"' in path.read_text(encoding="utf-8") for path in tests), name


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_documented(name: str) -> None:
    page = (PROJECT / "docs/instructions.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page or f"## {name}" in page
