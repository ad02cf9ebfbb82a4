"""Kernels that record without end are stopped after a number of steps that allows for real
kernels.
"""

from __future__ import annotations

import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.limits import Limits
from nkic.compiler.compiled import Compiled
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.language.trace import RECORDING, VIEWING
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, a.dtype, nl.sbuf)
    {body}
    return a
"""
ENDLESS = {
    "while": "while True: nisa.memset(tile, 0.0)",
    "views": "while True: nisa.memset(tile[0:64, 0:8], 0.0)",
    "for": "for i in range(1000000): nisa.memset(tile, 0.0)",
    "tensors": "for i in range(1000000): nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)",
    "calls": "def f(n): return n and (f(n - 1), f(n - 1), nisa.memset(tile, 0.0))\n    f(100)",
    "registers": "for i in range(1000000): nisa.register_alloc(i)",
    "questions": "for i in range(40000): tile.get_pattern()",
    "views alone": "for i in range(1000000): tile.reshape((128, 8, 8))",
    "mistakes": "for i in range(1000000): nisa.memset(tile[0:200, 0:8], 0.0)",
    "the library": "for i in range(1000000): nl.add(tile, tile)",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_recording_without_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on steps allows this many instructions, tensors and views."""
    steps = 100_000
    monkeypatch.setattr("nkic.interpret.interpreter.DEFAULT_LIMITS", Limits(steps))
    text = HEAD.format(body=ENDLESS[name])
    loader = Loader.beside("k.py")
    with pytest.raises(CompileFailed) as failed:
        source = loader.main("k.py", text.encode())
        made = Compiled(source)
        compile_source(
            source, Request(args=dict([parse_arg("a=float32[128,64]")])), loader, compiled=made
        )
    said = [one for one in failed.value.diagnostics if one.code.slug == "runaway"]
    assert [one.primary is not None for one in said] == [True]
    assert len(failed.value.diagnostics) <= 2
    assert made.results.keys() == {"parse", "resolve"}  # nothing is searched in such a program


def test_half_a_million_instructions_are_allowed() -> None:
    one = 1 + RECORDING + 2 * VIEWING
    assert 500_000 * one < Limits().steps < 1_000_000 * one
