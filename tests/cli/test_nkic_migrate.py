"""`nkic --migrate`: destination of the new source, messages, exit codes."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nkic.migrate.stage import Migrated
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import ROOT, Run

__all__ = ["folder", "nkic"]
OLD = """# /// nkic
# nki = "0.5"
# [args]
# a = "float32[128, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    for i in nl.affine_range(2):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
NEW = OLD.replace("nl.affine_range", "range").replace('"0.5"', '"0.7"')
STUCK = OLD.replace("affine_range(2):", "dynamic_range(2):  # here").replace(
    "    out =", "    else:\n        pass\n    out ="
)


@pytest.fixture
def old(folder: Path) -> Path:
    path = folder / "old.py"
    path.write_text(OLD, "utf-8")
    return path


def test_the_difference_is_printed(nkic: Run, old: Path) -> None:
    ran = nkic("old.py", "--migrate")
    assert ran.code == 0
    assert ran.out.startswith("--- old.py\n+++ old.py\n@@")
    assert "-    for i in nl.affine_range(2):\n+    for i in range(2):\n" in ran.out
    assert ran.err == "NKI 0.7: 1 × a name that was replaced; 0 places left unchanged\n"
    assert old.read_text("utf-8") == OLD


def test_in_place_and_again(nkic: Run, old: Path) -> None:
    assert nkic("old.py", "--migrate", "--in-place").code == 0
    assert old.read_text("utf-8") == NEW
    ran = nkic("old.py", "--migrate")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to rewrite" in ran.err


def test_to_another_file(nkic: Run, old: Path) -> None:
    assert nkic("old.py", "--migrate", "0.7", "-o", "new.py").code == 0
    assert old.with_name("new.py").read_text("utf-8") == NEW
    assert nkic("old.py", "--migrate", "-o", "./old.py").code == 2
    assert old.read_text("utf-8") == OLD


def test_a_mark_of_utf_8_stays(nkic: Run, old: Path) -> None:
    old.write_bytes(b"\xef\xbb\xbf" + OLD.encode())
    assert nkic("old.py", "--migrate", "--in-place").code == 0
    assert old.read_bytes() == b"\xef\xbb\xbf" + NEW.encode()


def test_what_is_left_is_an_error(nkic: Run, old: Path) -> None:
    old.write_text(STUCK, "utf-8")
    ran = nkic("old.py", "--migrate")
    assert ran.code == 1
    assert "old.py:15:14: error[NKI0272]" in ran.err
    assert "it has an `else`" in ran.err
    assert "1 place left unchanged" in ran.err


def test_the_proof_is_said(nkic: Run, old: Path) -> None:
    ran = nkic("old.py", "--migrate", "--verify")
    assert ran.code == 0
    lines = [line for line in ran.err.splitlines() if line.startswith("verified")]
    assert lines[0].startswith("verified a=float32[128,64]: same bits; ")
    assert any("a=float32[127,64]: same bits" in line for line in lines)  # a shape at a tile's edge
    assert len(lines) == 4


def test_a_wrong_migration_is_found(nkic: Run, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any) -> Migrated:
        return Migrated(NEW.replace("operand0=2.0", "operand0=3.0"), {}, ())

    monkeypatch.setattr("nkic.migrate.stage.migrate", wrong)
    ran = nkic("old.py", "--migrate", "--verify")
    assert ran.code == 1
    assert "verified a=float32[128,64]: different: " in ran.err


def test_a_new_source_that_fails_is_found(
    nkic: Run, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*args: Any) -> Migrated:
        return Migrated(NEW.replace("nl.multiply", "nl.multiplied"), {}, ())

    monkeypatch.setattr("nkic.migrate.stage.migrate", wrong)
    ran = nkic("old.py", "--migrate", "--verify")
    assert ran.code == 1
    assert "the new source fails" in ran.err
    assert "nl.multiplied" in ran.err


def test_an_old_source_that_fails_proves_nothing(nkic: Run, old: Path) -> None:
    old.write_text(OLD.replace("nl.multiply", "nl.multiplied"), "utf-8")
    ran = nkic("old.py", "--migrate", "--verify")
    assert ran.code == 1
    assert "error[NKI0273]" in ran.err
    old.write_text(
        re.sub(r"(?m)^# .*\n", "", OLD), "utf-8"
    )  # no types: the help asks for the same again
    ran = nkic("old.py", "--migrate", "--verify")
    assert "complete and run: nkic --migrate --verify old.py -k " in ran.err


def test_events_keep_to_the_schema(nkic: Run, old: Path) -> None:
    schema = json.loads((ROOT / "nkic/base/render/diagnostic.schema.json").read_text("utf-8"))
    ran = nkic("old.py", "--migrate", "--verify", "--message-format", "json")
    found = [json.loads(line) for line in ran.err.splitlines()]
    for event in found:
        jsonschema.Draft202012Validator(schema).validate(event)
    assert [event["type"] for event in found] == ["migrated", *["verified"] * 4]
    assert found[0]["done"] == {"a name that was replaced": 1}
    assert {event["verdict"] for event in found[1:]} == {"bits"}


def test_without_the_library_the_line_that_installs_it(
    nkic: Run, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    ran = nkic("old.py", "--migrate")
    assert ran.code == 2
    assert "pip install libcst" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["old.py", "--verify"], "`--verify` needs `--migrate`"),
        (["old.py", "--in-place"], "`--in-place` needs `--migrate`"),
        (["old.py", "--migrate", "--in-place", "-o", "x.py"], "both say where"),
        (["old.py", "--migrate", "--serial"], "`--migrate` writes source, not a program"),
        (["--migrate", "old.py"], "`nkic old.py --migrate`"),
        (["old.py", "--migrate", "0.3"], "the source is written for NKI 0.5"),
        (["old.py", "--migrate", "0.9"], "no version `0.9`"),
        (["-", "--migrate", "--in-place"], "standard input cannot be replaced"),
    ],
)
def test_what_makes_no_sense_is_refused(nkic: Run, old: Path, words: list[str], said: str) -> None:
    ran = nkic(*words)
    assert ran.code == 2
    assert said in ran.err
