"""What a warning of a race between cores says besides its two places."""

from __future__ import annotations

from tests.harness.kernels import compile_text

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
