"""Test nkic --spill as a command: messages, the content of the file, combinations of options."""

import json
from pathlib import Path

import pytest

from nkic.cli.common import run
from nkic.cli.nki_run import command as runner
from nkic.report.resources import resources
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import Run, failure, written
from tests.unit.compiler.test_spill import KERNEL

__all__ = ["folder", "nkic"]
WORDS = ("wide.py", "--arg", "x=float32[128,16000]")
TILE = 128 * 16_000 * 4


@pytest.fixture(autouse=True)
def wide(folder: Path) -> None:
    (folder / "wide.py").write_text(KERNEL, encoding="utf-8")


def test_without_it_the_error_names_it(nkic: Run) -> None:
    text = failure(nkic(*WORDS), 1, "sbuf-overflow")
    assert "spill tiles to HBM with --spill, which moves 57.3 MB to and from HBM" in text


def test_what_waits_is_said_and_noted(nkic: Run, folder: Path) -> None:
    done = nkic(*WORDS, "--spill", "--emit", "neff,allocated")
    assert done.code == 0
    assert "3 tensors are spilled to HBM, 24.6 MB stored, 32.8 MB loaded" in done.err
    assert "3 tensors `one` from here: 24.6 MB stored, 32.8 MB loaded" in done.err
    found = resources(written(folder / "wide.neff"))
    assert found.spilled_bytes == 7 * TILE
    assert found.line.split("DMA ")[-1].startswith("98.3 MB (57.3 MB spilled)")
    text = (folder / "wide.allocated.ir").read_text()
    assert text.count(" one.spilled: float32[128, 16000] hbm") == 3
    assert f"note spill_stored = '{3 * TILE}'" in text


def test_a_run_tells_of_it(nkic: Run, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert nkic(*WORDS, "--spill").code == 0
    capfd.readouterr()
    assert run(runner, "nki-run", ["wide.neff", "--fill", "ones", "--report", "json=r.json"]) == 0
    assert json.loads((folder / "r.json").read_text())["verdict"]["spilled"] == 7 * TILE


def test_check_finds_room_with_it(nkic: Run) -> None:
    assert nkic(*WORDS, "--check").code == 1
    assert nkic(*WORDS, "--check", "--spill").code == 0


def test_where_there_is_room_it_changes_nothing(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "-o", "a.neff") == nkic("k.py", "-o", "b.neff", "--spill") == (0, "", "")
    assert (folder / "a.neff").read_bytes() == (folder / "b.neff").read_bytes()


REFUSED = [("x.sched",), ("--print", "targets"), ("k.py", "--print", "kernels")]


@pytest.mark.parametrize("words", REFUSED, ids=str)
def test_what_it_cannot_change_refuses_it(nkic: Run, words: tuple[str, ...]) -> None:
    text = failure(nkic(*words, "--spill"), 2, "conflicting-options")
    assert "`--spill` cannot be used together" in text


LOOPED = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

    def body(i):
        tiles = [nl.ndarray(x.shape, x.dtype, nl.sbuf) for _ in range(4)]
        for tile in tiles:
            nisa.dma_copy(tile, x)
        for tile in tiles:
            nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=tile, op=nl.add)
        for tile in tiles:
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tiles[0], op=nl.add)
            nisa.dma_copy(out, tile)

    nl.fori_loop(0, 4, body)
    return out
"""
SUMS = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x):
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), x.dtype, nl.sbuf)
    nisa.dma_copy(tile, x[:, 0:512])
    sums = [nl.ndarray((128, 512), nl.float32, nl.psum) for _ in range(9)]
    for one in sums:
        nisa.nc_matmul(dst=one, stationary=tile[:, 0:128], moving=tile)
    for one in sums:
        nisa.tensor_tensor(dst=tile, data1=tile, data2=one, op=nl.add)
    nisa.dma_copy(out, tile)
    return out
"""


def test_a_device_loop_that_holds_too_much_is_named(nkic: Run, folder: Path) -> None:
    (folder / "wide.py").write_text(LOOPED, encoding="utf-8")
    text = failure(nkic(*WORDS, "--spill"), 1, "sbuf-overflow")
    assert (
        "an iteration of the loop at wide.py:21 needs 256,000 bytes per partition, so use fewer"
    ) in text
    assert "or write it with `range`, which is unrolled" in text
    unrolled = LOOPED.replace("nl.fori_loop(0, 4, body)", "for i in range(4):\n        body(i)")
    (folder / "wide.py").write_text(unrolled, encoding="utf-8")
    assert nkic(*WORDS, "--spill").code == 0


def test_sums_in_psum_do_not_wait_in_hbm(nkic: Run, folder: Path) -> None:
    (folder / "wide.py").write_text(SUMS, encoding="utf-8")
    text = failure(nkic(*WORDS, "--spill"), 1, "psum-overflow")
    assert "copy sums to SBUF with nisa.tensor_copy before starting more of them" in text
