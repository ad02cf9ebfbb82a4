"""Differences between devices, and uninitialised memory, through the options of both commands."""

import re
from pathlib import Path

import numpy as np
import pytest

from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import Ran, Run

__all__ = ["folder", "nkic"]
KERNEL = """\
# /// nkic
# [args]
# a = "float32[128, 64]"
# rows = "int32[1, 1]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, rows):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.log(x)
    z = nl.divide(x, x)
    n = nl.load(rows)
    reg = nisa.register_alloc()
    nisa.register_load(reg, n)

    def turn(i):
        nisa.dma_copy(dst=out.ap([[64, 1], [1, 64]], scalar_offset=i, indirect_dim=0), src=y[0:1])

    nl.fori_loop(0, reg, turn)
    nisa.tensor_copy(dst=y, src=z)
    return out
"""


def said(text: str) -> list[str]:
    return re.findall(r"((?:error|warning|remark)\[NKI\d{4}\])", text)


@pytest.fixture
def compiled(nkic: Run, folder: Path) -> Path:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    done = nkic("k.py", "-o", "k.neff", "-A", "NKI0531")  # the last copy is not read
    assert (done.code, said(done.err)) == (0, ["warning[NKI0702]"])
    return folder


def ran(capfd: pytest.CaptureFixture[str], *words: str, rows: int = 128) -> Ran:
    np.savez("in.npz", a=np.full((128, 64), -1, np.float32), rows=np.array([[rows]], np.int32))
    capfd.readouterr()
    code = run(nki_run, "nki-run", ["k.neff", "--inputs", "in.npz", *words])
    return Ran(code, *capfd.readouterr())


def test_ci_denies_the_family(nkic: Run, compiled: Path) -> None:
    unused = ("-A", "NKI0531")
    assert said(nkic("k.py", "-D", "07", *unused).err) == ["error[NKI0702]"]
    assert nkic("k.py", "-A", "07", *unused).err == ""


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ((), 0, ["remark[NKI0703]"]),
        (("-A", "07"), 0, []),
        (("-q",), 0, []),
        (("-D", "07"), 5, ["error[NKI0703]"]),
        (("-Werror",), 0, ["remark[NKI0703]"]),
    ],
)
def test_the_runner_remarks(
    compiled: Path,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    expected: list[str],
) -> None:
    done = ran(capfd, *words)
    assert (done.code, said(done.err)) == (code, expected)


def test_the_place_is_the_kernels(compiled: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = ran(capfd, "--message-format=short")
    assert re.search(r"^k\.py:15:9: remark\[NKI0703\]: activation: 8,192 elements", done.err, re.M)
    done = ran(capfd, "--message-format=github", "-D", "07")
    assert re.search(r"^::error file=k\.py,line=15,", done.err, re.M)


@pytest.mark.parametrize(
    ("rows", "words", "code", "expected"),
    [
        (127, ("-A07",), 5, ["error[NKI0257]"]),
        (127, ("-A07", "-W", "0257"), 0, ["warning[NKI0257]"]),
        (127, ("-A07", "-A", "output-partly-written"), 0, []),
        (127, ("-A07", "--no-init-check"), 0, []),
        (0, ("-A07",), 5, ["error[NKI0253]"]),
        (0, ("-A07", "-A", "0257"), 5, ["error[NKI0253]"]),
    ],
)
def test_results_that_a_run_leaves_unwritten(
    compiled: Path,
    capfd: pytest.CaptureFixture[str],
    rows: int,
    words: tuple[str, ...],
    code: int,
    expected: list[str],
) -> None:
    done = ran(capfd, *words, "--outputs", "out.npz", rows=rows)
    assert (done.code, said(done.err)) == (code, expected)
    assert (compiled / "out.npz").exists() == (code == 0)


def test_what_is_not_said_of_speed_is_counted(nkic: Run, folder: Path) -> None:
    matmul = """    p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x, moving=x)
    spare = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    return out"""
    (folder / "k.py").write_text(KERNEL.replace("    return out", matmul), encoding="utf-8")
    done = nkic("k.py", "--check", "-A", "NKI0531")
    assert done.err.splitlines()[-1] == (
        "2 warnings; 1 remark about speed not shown: -W 06 shows them"
    )
    shown = nkic("k.py", "--check", "-W", "06", "-A", "NKI0531")
    assert shown.err.splitlines()[-1] == "3 warnings"
    assert "warning[NKI0631]" in said(shown.err)


def test_deprecations_are_joined_with_their_fixes(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace(
        "    return out", "    a, b = nisa.vector_engine, nisa.vector_engine\n"
    ) + ("    c = nisa.vector_engine\n    return out\n")
    (folder / "k.py").write_text(text, encoding="utf-8")
    done = nkic("k.py", "--check", "-A07", "-A", "NKI0531")
    assert said(done.err) == ["warning[NKI0270]"]
    assert re.search(r"also in line \d+, line \d+$", done.err, re.M)
    assert done.err.count("fix: write `engine.vector`") == 3
