"""A current directory with a compiled kernel in it, and runs of nki-run there."""

import os
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkic.base import diagnostics
from nkic.cli.common import run
from nkic.cli.nki_run import command
from nkic.cli.nkic import command as compiler
from tests.harness import warm
from tests.harness.commands import Ran, Run

BF16 = np.dtype(ml_dtypes.bfloat16)
KERNEL = """\
# /// nkic
# [args]
# a = "float32[128, 8]"
# b = "bfloat16[4, 16]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scale(a, b):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=a, src=x)
    y = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.add, operand0=1.0)
    out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return a, out
"""
A = np.arange(1024, dtype=np.float32).reshape(128, 8)
B = np.arange(64, dtype=np.float32).reshape(4, 16).astype(BF16)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    assert run(compiler, "nkic", [str(folder / "k.py"), "-o", str(folder / "k.neff")]) == 0
    return (folder / "k.neff").read_bytes()


@pytest.fixture
def folder(artifact: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory with a compiled kernel, its inputs, and its expected outputs."""
    for name in list(os.environ):
        if name.startswith(("NKI", "FORCE_COLOR", "CLICOLOR")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.neff").write_bytes(artifact)
    np.savez("data.npz", a=A, b=B)
    np.savez("e.npz", output_0=2 * A, output_1=(B.astype(np.float32) + 1))
    return tmp_path


@pytest.fixture
def nki(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command in this process."""

    def call(*words: str) -> Ran:
        capfd.readouterr()
        code = run(command, "nki-run", words)
        return Ran(code, *capfd.readouterr())

    return call


def process(*words: str, stdin: bytes = b"", **environ: str) -> Any:
    """Run the command in a process of its own, in the current directory."""
    env = {**os.environ, **environ}
    return warm.run(warm.NKI_RUN, *words, cwd=Path.cwd(), env=env, stdin=stdin)


def refused(ran: Ran, code: int, slug: str) -> str:
    """Return the output of a run that must end with this exit code and this one diagnostic."""
    assert ran.code == code, ran.err
    assert re.findall(r"error\[(NKI\d{4})\]", ran.err) == [diagnostics.code(slug).number], ran.err
    assert "Traceback" not in ran.err
    return ran.err


RUN = ("kernel.neff", "--inputs", "data.npz")
