"""Test instructions on neighbouring slices of HBM tensors that are computed together.

They give the same bits and cycles as one after the other, and are used only where no difference is
observable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.simulate import RunOptions, simulate
from nkic.simulate import streams as module
from nkic.simulate.streams import Bands
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.unit.simulate.storage.test_in_place import same

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

def tile(like, width=64):
    return nl.ndarray((128, width), dtype=like.dtype, buffer=nl.sbuf)

@nki.jit
def kernel(a, b):
    out = nl.ndarray((256, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    more = nl.ndarray((256, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        place = (nl.ds(i // 4 * 128, 128), nl.ds(i % 4 * 64, 64))
        x, y, z = tile(a), tile(a), tile(a)
        nisa.dma_copy(dst=x, src=a[place])
        nisa.dma_copy(dst=y, src=b[place])
        BODY
        nisa.dma_copy(dst=out[place], src=z)
    return RESULTS
"""
ADD = "nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add)"
AGAIN = """
        w = tile(a)
        nisa.tensor_scalar(dst=w, data=z, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=more[place], src=w)"""
# The computation, the order of tiles, and the number of instructions in each band.
CASES: dict[str, tuple[str, str, list[int]]] = {
    "two rows of tiles": (ADD, "range(8)", [4, 4]),
    "columns first": (ADD, "(0, 4, 1, 5, 2, 6, 3, 7)", [4, 4]),
    "from right to left": (ADD, "range(7, -1, -1)", [4, 4]),
    "one tile is missing": (ADD, "(0, 1, 3, 4, 5, 6, 7)", [1, 2, 4]),
    "of one tile, with numbers": (
        "nisa.tensor_scalar(dst=z, data=x, op0=nl.add, operand0=1.0, op1=nl.maximum, operand1=0.5)",
        *("range(8)", [4, 4]),
    ),
    "numbers that differ": (
        "nisa.tensor_scalar(dst=z, data=x, op0=nl.add, operand0=float(i % 2))",
        *("range(8)", [1] * 8),
    ),
    "a column for each partition": (
        "nisa.tensor_scalar(dst=z, data=x, op0=nl.multiply, operand0=y[:, 0:1])",
        *("range(8)", []),
    ),
    "a result that is read again": (ADD + AGAIN, "range(8)", [4, 4]),
    "half of a tile": (
        "nisa.tensor_copy(dst=z, src=x)\n        u = tile(a, 32)\n        "
        "nisa.tensor_copy(dst=u, src=x[:, 0:32])\n        "
        "nisa.dma_copy(dst=more[place[0], nl.ds(i % 4 * 64, 32)], src=u)",
        *("range(8)", [4, 4]),
    ),
    "what depends on the place": (
        "nisa.affine_select(dst=z, pattern=[[1, 64]], offset=-9, channel_multiplier=1, "
        "on_true_tile=x, on_false_value=0.0, cmp_op=nl.greater)",
        *("range(8)", []),
    ),
}


def executable(body: str, iterations: str, dtype: str = "float32") -> Executable:
    results = "out, more" if "more[" in body else "out"
    text = HEAD.replace("BODY", body).replace("RESULTS", results).replace("range(8)", iterations)
    types = dict(parse_arg(f"{name}={dtype}[256, 256]") for name in "ab")
    request = Request(kernel="kernel", args=types)
    return compile_source(SourceFile("k.py", text), request, lambda *_: None).executable


def inputs(dtype: str = "float32") -> dict[str, Any]:
    draw = np.random.default_rng(3)
    values = {name: draw.standard_normal((256, 256)).astype(np.float32) for name in "ab"}
    values["a"][3, 5], values["b"][200, 1] = np.nan, np.inf
    return values if dtype == "float32" else {n: v.view(np.int32) for n, v in values.items()}


def members(found: Executable, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run in bands and one by one, compare, and return the number of items in each band.

    The second program is another one: a repetition of the first would be its recorded run.
    """
    counts: list[int] = []
    settle = Bands.settle

    def counted(bands: Bands) -> None:
        found = [*bands.bands()]
        counts.extend(map(len, found))
        settle(bands)
        for band in found:
            assert [member.item.step is module.nothing for member in band].count(False) == 1

    monkeypatch.setattr(Bands, "settle", counted)
    together = simulate(found, given, RunOptions(trace=1000))
    monkeypatch.setattr(Bands, "settle", lambda bands: None)
    same(together, simulate(replace(found), given, RunOptions(trace=1000)))
    return sorted(counts)


@pytest.mark.parametrize("what", CASES)
def test_bands_are_found_where_nobody_can_tell(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, iterations, wanted = CASES[what]
    assert members(executable(body, iterations), inputs(), monkeypatch) == wanted


def test_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.bitwise_xor)"
    found = executable(body, "range(8)", "int32")
    assert members(found, inputs("int32"), monkeypatch) == [4, 4]


def test_a_band_has_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ELEMENTS", 3 * 128 * 64)
    assert members(executable(ADD, "range(8)"), inputs(), monkeypatch) == [1, 1, 3, 3]
