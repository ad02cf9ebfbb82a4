"""A forgotten transposition is named where it is the cause of other numbers, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic import api
from nkic.api.calling import Called
from nkic.api.comparing import differences
from nkic.cli.common import run
from nkic.cli.nki_run import command

KERNEL = '''
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def product(a, b):
    """Takes each tile of `a` as if it were transposed already."""
    rows, depth = a.shape
    size = min(128, rows)
    out = nl.ndarray((rows, b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, rows, size):
        p = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.psum)
        for k in range(0, depth, size):
            left = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.sbuf)
            right = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[m : m + size, k : k + size])
            nisa.dma_copy(dst=right, src=b[k : k + size])
            nisa.nc_matmul(dst=p, stationary=left, moving=right)
        s = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=s, op=nl.tanh, data=p)
        nisa.dma_copy(dst=out[m : m + size], src=s)
    return out
'''
RANDOM = np.random.default_rng(0)
CAUSE = "transposed, the kernel computes what was expected"


def floats(*shape: int) -> NDArray[Any]:
    return RANDOM.standard_normal(shape).astype(np.float32) / 16


def said(folder: Path, capfd: pytest.CaptureFixture[str], a: Any, b: Any, expected: Any) -> str:
    """Return what the command says of these outputs; Python's comparison says the same."""
    (folder / "k.py").write_text(KERNEL, "utf-8")
    inputs = {"a": f"f32{[*a.shape]}".replace(" ", ""), "b": f"f32{[*b.shape]}".replace(" ", "")}
    artifact = api.compile(str(folder / "k.py"), inputs=inputs)
    artifact.save(str(folder / "k.neff"))
    np.savez(folder / "in.npz", a=a, b=b)
    np.savez(folder / "expected.npz", output_0=expected)
    words = ("-i", str(folder / "in.npz"), "--expected", str(folder / "expected.npz"), "-q")
    run(command, "nki-run", [str(folder / "k.neff"), *words])
    text: str = capfd.readouterr().err
    result = api.run(artifact, {"a": a, "b": b})
    called = Called(result.outputs["output_0"], {}, result, artifact, {"a": a, "b": b})
    assert (CAUSE in differences(called, expected)) == (CAUSE in text)
    return text


@pytest.mark.parametrize(
    ("rows", "depth", "what"),
    [(128, 128, "`a`"), (64, 64, "`a`"), (256, 128, "each 128 x 128 tile of `a`")],
)
def test_the_input_is_named(
    rows: int, depth: int, what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = floats(rows, depth), floats(depth, 32)
    text = said(tmp_path, capfd, a, b, np.tanh(a @ b))
    assert f"note: with {what} {CAUSE}: nc_matmul computes `stationary.T @ moving`" in text


def test_other_mistakes_are_not_blamed_on_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = floats(128, 128), floats(128, 32)
    for expected in (np.tanh(a @ b) + a[:, :32], np.tanh(a.T @ b) * 2):
        assert CAUSE not in said(tmp_path, capfd, a, b, expected)
    assert "differ" not in said(tmp_path, capfd, a, b, np.tanh(a.T @ b))
