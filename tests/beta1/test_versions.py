"""Tiles that a loop overwrites: which get memory of their own, and that values stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a[:, 448:512])
    for i in nl.sequential_range(8):
"""
STORE = "nl.store(out[:, i * 64:(i + 1) * 64], nl.multiply(t, 2.0))"
WHOLE = ("nisa.dma_copy(dst=t, src=a[:, i * 64:(i + 1) * 64])",)
FRESH = ("t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)", *WHOLE)
HALVES = (
    "nisa.dma_copy(dst=t[:, 0:32], src=a[:, i * 64:i * 64 + 32])",
    "nisa.dma_copy(dst=t[:, 32:64], src=a[:, i * 64 + 32:(i + 1) * 64])",
)
A_HALF = HALVES[:1]
SOME_ROWS = ("nisa.dma_copy(dst=t[0:64], src=a[0:64, i * 64:(i + 1) * 64])",)
ADDED = ("t[...] = nl.add(t, nl.load(a[:, i * 64:(i + 1) * 64]))",)


def compiled(lines: tuple[str, ...]) -> nkic.Artifact:
    text = HEAD + "".join(f"        {line}\n" for line in (*lines, STORE)) + "    return out\n"
    return nkic.compile(SourceFile("k.py", text), inputs={"a": "f32[128,512]"})


def versions(lines: tuple[str, ...]) -> int:
    """Return the number of tensors that are versions of `t`."""
    return sum(tensor.name == "t" for tensor in compiled(lines).executable.tensors)


@pytest.mark.parametrize(
    ("lines", "number"),
    [(WHOLE, 8), (HALVES, 8), (A_HALF, 1), (SOME_ROWS, 1), (ADDED, 1)],
    ids=["whole", "halves", "a half", "some rows", "added"],
)
def test_a_tile_that_is_overwritten_as_a_whole_has_versions(
    lines: tuple[str, ...], number: int
) -> None:
    assert versions(lines) == number


@pytest.mark.parametrize(
    "lines", [WHOLE, HALVES, A_HALF, SOME_ROWS, ADDED], ids=["all", "two", "half", "rows", "sum"]
)
def test_versions_have_the_values_of_one_tile(lines: tuple[str, ...]) -> None:
    a = np.random.default_rng(5).integers(-9, 9, (128, 512)).astype(np.float32)
    t, wanted = a[:, 448:512].copy(), np.empty_like(a)
    for i in range(8):
        block = a[:, i * 64 : (i + 1) * 64]
        if lines is A_HALF:
            t[:, :32] = block[:, :32]
        elif lines is SOME_ROWS:
            t[:64] = block[:64]
        else:
            t = t + block if lines is ADDED else block.copy()
        wanted[:, i * 64 : (i + 1) * 64] = 2 * t
    found = nkic.run(compiled(lines), {"a": a}).outputs["output_0"]
    np.testing.assert_array_equal(found, wanted)


def test_one_buffer_is_as_fast_as_a_tile_for_each_iteration() -> None:
    estimates = [float(compiled(lines).executable.meta["estimate_ns"]) for lines in (WHOLE, FRESH)]
    assert estimates[0] == pytest.approx(estimates[1], rel=0.05)


def test_from_beta_2_on_a_buffer_is_what_the_kernel_says() -> None:
    text = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(8):
        nisa.dma_copy(dst=t, src=a[:, i * 64:(i + 1) * 64])
        nisa.dma_copy(dst=out[:, i * 64:(i + 1) * 64], src=t)
    return out
"""
    made = nkic.compile(SourceFile("k.py", text), inputs={"a": "f32[128,512]"})
    assert [tensor.name for tensor in made.executable.tensors].count("t") == 1
