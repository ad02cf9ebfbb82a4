"""Values computed from an entirely masked-out tile are masked out with it."""

from __future__ import annotations

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile

SOURCE = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, ids):
    out = nl.ndarray((2, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.affine_range({turns}):
        there = i < 2
        where = nl.load_transpose2d(ids[nl.ds(i, 1), :], dtype=nl.int32, mask=there)
        first = nl.load(ids[nl.ds(i, 1), 0:1], mask=there)
        t = nl.load(a[where[nl.arange(128)[:, None], 0], nl.arange(64)[None, :]])
        t = nl.add(t, nl.copy(first.broadcast_to((128, 1)), dtype=nl.float32))
        nl.store(out[i], t, mask=there)
    return out
"""


@pytest.mark.parametrize("turns", [2, 3])
def test_rows_found_at_hidden_places_are_not_loaded(turns: int) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-9, 9, (300, 64)).astype(np.float32)
    ids = rng.integers(0, 300, (2, 128)).astype(np.int32)
    made = nkic.compile(SourceFile("k.py", SOURCE.format(turns=turns)), inputs={"a": a, "ids": ids})
    found = np.asarray(nkic.run(made, {"a": a, "ids": ids}).outputs["output_0"])
    assert (found == a[ids] + ids[:, :1, None]).all()
