"""Test races between cores: which accesses share a byte, and the text of the warning."""

from random import Random

import pytest

from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.races import _share
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Buffer
from nkic.program.program import Tensor
from tests.harness.kernels import compile_text
from tests.pages.patterns import drawn, touched

RACE = """\
# /// nkic
# kernel = "kernel"
# lnc = 2
# [args]
# a = "float32[128,64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


def store(dst, tile):
    nisa.dma_copy(dst=dst, src=tile)


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    store(out, t)
    return out
"""


def line_of(text: str) -> int:
    return RACE.split("\n").index(text) + 1


def test_a_race_in_a_function_names_its_call() -> None:
    (race,) = (one for one in compile_text(RACE) if one.code.slug == "core-race")
    assert race.primary is not None
    inside = line_of("    nisa.dma_copy(dst=dst, src=tile)")
    assert race.primary.span.line == inside
    said = [(label.span.line, label.text) for label in race.labels]
    other = {"core 0 writes it here", "core 1 writes it here"}
    assert said[0][0] == inside and said[0][1] in other
    assert said[1:] == [(line_of("    store(out, t)"), "called from here")]


@pytest.mark.parametrize("seed", range(40))
def test_accesses_share_a_byte_as_by_brute_force(seed: int) -> None:
    """Whatever their types and steps."""
    rng = Random(seed)
    shape = rng.choice([(24,), (3, 8), (2, 3, 4)])
    tensor = Tensor(0, "t", DTYPES["float16"], shape, Buffer.SHARED_HBM, CallChain(NOWHERE))
    found = [drawn(tensor, rng.choice(["float16", "uint8"]), rng) for _ in range(8)]
    bytes_of = [touched(one.offset, one.dims, one.dtype.size) for one in found]
    for one, own in zip(found, bytes_of, strict=True):
        for other, its in zip(found, bytes_of, strict=True):
            assert _share(one, other) == bool(own & its), (one, other)
