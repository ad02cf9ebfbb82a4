"""nki-run --ranks: several ranks of one kernel, each with its own files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nkic.cli.common import run
from nkic.cli.nkic import command as compiler
from tests.cli.nki_run_fixtures import artifact, folder, nki, refused
from tests.harness.commands import Run

__all__ = ["artifact", "folder", "nki"]

KERNEL = """\
# /// nkic
# [args]
# a = "float32[4, 8]"
# ///
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def total(a):
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    dst = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=src, src=a)
    ncc.all_reduce([src], [dst], ncc.ReplicaGroup([[0, 1, 2]]), nl.add)
    return dst
"""
A = np.arange(96, dtype=np.float32).reshape(3, 4, 8)
WORDS = ("ranks.neff", "--ranks", "3", "--inputs", "a{rank}.npz")


@pytest.fixture(autouse=True)
def ranks(folder: Path) -> None:
    """Write the kernel, and the inputs of three ranks."""
    (folder / "total.py").write_text(KERNEL, encoding="utf-8")
    assert run(compiler, "nkic", ["total.py", "-o", "ranks.neff", "-q"]) == 0
    for rank in range(3):
        np.savez(f"a{rank}.npz", a=A[rank])
    np.savez("sum.npz", output_0=A.sum(axis=0))


def test_every_rank_reads_and_writes_its_own(nki: Run) -> None:
    done = nki(*WORDS, "--outputs", "o{rank}.npz", "-o", "output_0=@o{rank}.npy")
    assert done.code == 0, done.err
    for rank in range(3):
        assert np.array_equal(np.load(f"o{rank}.npz")["output_0"], A.sum(axis=0))
        assert np.array_equal(np.load(f"o{rank}.npy"), A.sum(axis=0))
    assert [f"rank {rank}:" in done.err for rank in range(4)] == [True, True, True, False]


def test_ranks_may_share_what_is_read(nki: Run) -> None:
    done = nki("ranks.neff", "--ranks", "3", "-i", "a=@one.npy", "--expected", "three.npz")
    assert done.code != 0
    np.save("one.npy", A[1])
    np.savez("three.npz", output_0=3 * A[1])
    assert (
        nki("ranks.neff", "--ranks", "3", "-i", "a=@one.npy", "--expected", "three.npz").code == 0
    )


def test_one_wrong_rank_is_enough(nki: Run) -> None:
    assert nki(*WORDS, "--expected", "sum.npz").code == 0
    for rank in range(3):
        np.savez(f"e{rank}.npz", output_0=A.sum(axis=0) + (rank == 1))
    done = nki(*WORDS, "--expected", "e{rank}.npz")
    assert done.code == 1
    assert done.err.count("NKI1007") == 1


def test_json_holds_every_rank(nki: Run) -> None:
    found = json.loads(nki(*WORDS, "--json").out)
    assert [run["kernel"] for run in found["ranks"]] == ["total"] * 3
    assert len({run["cycles"] for run in found["ranks"]}) == 1


def test_what_would_be_lost_or_read_twice_is_refused(nki: Run) -> None:
    refused(nki(*WORDS, "--outputs", "o.npz"), 2, "bad-value")
    refused(nki(*WORDS, "-o", "output_0=@o.npy"), 2, "bad-value")
    refused(nki("ranks.neff", "--ranks", "3", "--inputs", "-"), 2, "bad-value")
    refused(nki("ranks.neff", "--inputs", "a{rank}.npz"), 2, "bad-value")
    refused(nki("inspect", "ranks.neff", "--ranks", "2"), 2, "unknown-option")


def test_too_few_ranks(nki: Run) -> None:
    text = refused(nki("ranks.neff", "--ranks", "2", "--inputs", "a{rank}.npz"), 5, "collective")
    assert "the collective is for the ranks 0, 1, 2, and 2 are run" in text
    assert "total.py:16:5" in text
