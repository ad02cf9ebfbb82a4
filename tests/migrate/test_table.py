"""The tables of docs/migration.md are computed from rows of results."""

from pathlib import Path

from tests.conformance.migration_table import Row, added, read, tables

ROWS = (
    Row("sdk", "one", "a.py", "bits", "bits", shapes=4),
    Row(
        "sdk", "two", "a.py", "bits", "failed", shapes=2, why="a=float32[1]: no | room", whole=False
    ),
    Row("samples", "three", "b.py", "rounding", "rounding", why="add became sub"),
    Row("samples", "four", "b.py", "failed", "failed", left=1, why="no rule"),
    Row("bench", "five", "c.py", "not run", "not run", why="no such kernel"),
)


def test_kernels_are_counted_by_checkout() -> None:
    lines = [*tables(ROWS)]
    assert "| examples of the SDK's documentation | 2 | 2 | 2 | 2 | 1 | 0 | 0 |" in lines
    assert "| nki-samples | 2 | 2 | 1 | 0 | 0 | 1 | 1 |" in lines
    assert "| all | 5 | 4 | 3 | 2 | 1 | 1 | 1 |" in lines
    text = " ".join(lines)
    assert "75.0 % are rewritten" in text
    assert "66.7 % give the same bits" in text
    assert "Of 2 files with such kernels, 1 have them all rewritten; in 0 of these" in text


def test_kernels_that_are_not_the_same_bits_are_listed_with_why() -> None:
    lines = [*tables(ROWS)]
    assert "| sdk: two | bits | failed | a=float32[1]: no \\| room |" in lines
    assert not any(line.startswith("| sdk: one") for line in lines)


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for row in ROWS:
        added(path, row)
    assert [*read(path).values()] == [*ROWS]
