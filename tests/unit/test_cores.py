"""Two physical cores run one kernel: each has its own bodies, memories and streams."""

from __future__ import annotations

import numpy as np

from nkic.base.source import SourceFile
from nkic.neff.read import read
from nkic.pipeline import compile_source
from nkic.simulate import simulate
from nkic.specialise.arguments import parse_arg
from nkic.specialise.request import Request

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    core, rows = nl.program_id(0), 256 // nl.num_programs(0)
    for start in range(core * rows, (core + 1) * rows, 128):
        t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=a[start : start + 128, :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(core + 1))
        nisa.dma_copy(dst=out[start : start + 128, :], src=t)
    return out
"""
DATA = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)


def test_each_core_does_its_half_at_the_same_time() -> None:
    found = {}
    for cores in (1, 2):
        request = Request(lnc=cores, grid=(cores,), args=dict([parse_arg("a=float32[256,64]")]))
        done = compile_source(SourceFile("k.py", KERNEL), request, lambda *_: None)
        executable = read(done.data)
        assert executable.cores == cores
        found[cores] = simulate(executable, {"a": DATA})
    expected = DATA + np.repeat(np.float32([1, 2]), 128)[:, None]
    assert np.array_equal(found[2].outputs["output_0"], expected)
    assert np.array_equal(found[1].outputs["output_0"], DATA + 1)
    assert found[2].engines["core1.vector"].instructions == 1
    assert found[2].time_ns < found[1].time_ns
