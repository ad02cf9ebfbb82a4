"""nkic --report remarks and changes from outside."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import Run

__all__ = ["folder", "nkic"]


def test_remarks_are_text_or_json(nkic: Run, folder: Path) -> None:
    shown = nkic("k.py", "--report", "remarks")
    assert (shown.code, shown.err) == (0, "")
    assert (folder / "k.neff").exists()
    assert any(
        ": - lower/dma-split: 1 transfer of 32.0 KiB: " in line for line in shown.out.splitlines()
    )
    assert nkic("k.py", "--report", "remarks=r.txt") == (0, "", "")
    assert (folder / "r.txt").read_text() == shown.out
    assert nkic("k.py", "--report", "remarks=r.json") == (0, "", "")
    found = json.loads((folder / "r.json").read_text())
    assert found["schema"] == 1
    assert len(found["remarks"]) == len(shown.out.splitlines())
    placed = [one for one in found["remarks"] if one["line"]]
    assert {one["path"] for one in placed} == {"k.py"}


def test_remarks_do_not_change_the_artifact(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "-o", "a.neff").code == 0
    assert (
        nkic("k.py", "-o", "b.neff", "--report", "remarks=r.txt", "--report", "changes").code == 0
    )
    assert (folder / "a.neff").read_bytes() == (folder / "b.neff").read_bytes()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("k.py", "--report", "remarks=r.yaml"), "remarks are not written in this format"),
        (("k.py", "--report", "remark"), "did you mean `remarks`?"),
        (
            ("k.py", "--check", "--report", "changes"),
            "`--check` and `--report` cannot be used together: `--check` writes nothing",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(nkic: Run, words: tuple[str, ...], text: str) -> None:
    done = nkic(*words)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_print_changed_is_a_difference_for_each_stage(nkic: Run) -> None:
    shown = nkic("k.py", "--report", "changes")
    assert (shown.code, shown.err) == (0, "")
    heads = [line for line in shown.out.splitlines() if line.startswith("+++ ")]
    assert heads == [f"+++ after {stage}" for stage in ("lower", "allocate", "schedule")]
    assert "\x1b" not in shown.out


def test_print_changed_has_colours_on_a_terminal(nkic: Run) -> None:
    plain = nkic("k.py", "--report", "changes", "--color", "never").out
    coloured = nkic("k.py", "--report", "changes", "--color", "always").out
    assert "\x1b[32m+stream 0 " in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
