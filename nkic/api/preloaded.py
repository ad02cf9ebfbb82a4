"""What processes that judge one kernel each are forked with: all that a first kernel fills.

The first compilation, run and analysis of a process fill the tables of the grammar, of instructions
and of the library, which takes longer than a small kernel itself. The server that processes are
forked from imports this module, and so does them once, for a kernel that nobody doubts.
"""

from __future__ import annotations

import gc

import numpy as np

from nkic.artifact.read import load
from nkic.artifact.verify import verify_ordered
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.machine.targets import TARGETS
from nkic.report.figures import trust_in
from nkic.report.verdict import insight
from nkic.simulate import RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

# What many kernels call; its values are not looked at.
KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def attend(q, k):
    out = nl.ndarray((128, 128), dtype=q.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        rows, keys = nl.load(q[nl.ds(64 * i, 64), :]), nl.ndarray((128, 128), dtype=k.dtype)
        nisa.dma_copy(dst=keys, src=k)
        turned = nl.ndarray((128, 64), dtype=q.dtype, buffer=nl.psum)
        nisa.nc_transpose(turned, rows)
        left, scores = nl.copy(turned), nl.zeros((64, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(scores, left, keys)
        most = nl.ndarray((64, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(most, nl.maximum, scores, axis=1, negate=True)
        e = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(e, nl.exp, scores, bias=most)
        total = nl.reciprocal(nl.sum(e, axis=1, keepdims=True))
        nisa.tensor_scalar(e, e, nl.multiply, total)
        f = nl.subtract(nl.add(e, e), nl.multiply(e, 2.0))
        f = nl.divide(nl.exp(f), nl.max(f, axis=1, keepdims=True))
        f = nl.maximum(nl.sqrt(nl.square(f)), nl.rsqrt(nl.mean(e, axis=1, keepdims=True)))
        nisa.tensor_tensor(f, f, e, nl.add)
        nisa.tensor_copy(rows, f)
        nl.store(out[nl.ds(64 * i, 64), :], rows)
    return out
"""


def _fill() -> None:
    """Compile, run and analyse the kernel, whatever the environment and settings ask for."""
    types = dict(parse_arg(f"{name}=bf16[128,128]") for name in "qk")
    source, request = SourceFile("attend.py", KERNEL), Request(args=types)
    executable = load(compile_source(source, request, lambda *_: None).data)
    verify_ordered(executable)
    arrays = {name: np.zeros((128, 128), np.uint16) for name in types}  # bits of bfloat16
    for _ in range(2):  # the second one repeats the first
        result = simulate(executable, arrays, RunOptions(trace=10_000, timeline=10_000))
    trust_in(result, TARGETS[executable.target])
    if result.recorded is not None:
        insight(result.recorded.trace, result.recorded.again).verdict.lines  # noqa: B018


_fill()
gc.freeze()  # forked processes share what is here, and need not look for garbage in it
