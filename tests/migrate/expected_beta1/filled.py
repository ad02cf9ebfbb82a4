# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[64, 4, 16]"
# ///
"""Tiles that an instruction fills, whose shape the call says."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    n, b, m = a.shape
    out = nl.ndarray((n, b, m), dtype=a.dtype, buffer=nl.shared_hbm)
    half = nl.ndarray((n, b, m), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(half, 0.5)
    shift = nl.ndarray([n, 1, 2 * m], dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=shift, value=3)
    x = nl.load(a)
    x[0:n, 0, 0:m] = nl.copy(shift[0:n, 0, m : 2 * m])
    nl.store(out, value=nl.multiply(x, half))
    return out
