"""What processes that judge one kernel each are forked with: all that a first kernel fills.

The first compilation, run and analysis of a process fill the tables of the grammar, of instructions
and of the library, which takes longer than a small kernel itself. The server that processes are
forked from imports this module, and so does them once, for a kernel that nobody doubts.
"""

from __future__ import annotations

import gc

from nkic.api.artifact import Artifact
from nkic.api.running import run
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
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
    types = dict(parse_arg(f"{name}=bf16[128,128]") for name in "qk")
    source = SourceFile("attend.py", KERNEL)
    artifact = Artifact(compile_source(source, Request(args=types), lambda *_: None).data)
    for _ in range(2):
        result = run(artifact, fill="zeros", race_check=True)
    result.json, result.verdict  # noqa: B018 - the analysis


_fill()
gc.freeze()  # forked processes share what is here, and need not look for garbage in it
