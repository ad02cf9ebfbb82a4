# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[64, 4, 16]"
# ///
"""Tiles that an instruction fills, whose shape the call says."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    n, b, m = a.shape
    out = nl.ndarray((n, b, m), dtype=a.dtype, buffer=nl.shared_hbm)
    half = nisa.memset((n, b, m), 0.5, nl.bfloat16)
    shift = nisa.memset(shape=[n, 1, 2 * m], value=3, dtype=nl.float32)
    x = nl.load(a)
    x[0:n, 0, 0:m] = nl.copy(shift[0:n, 0, m : 2 * m])
    nl.store(out, value=nl.multiply(x, half))
    return out
