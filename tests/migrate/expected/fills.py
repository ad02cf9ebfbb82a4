# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
# unproven: memset
"""Whole numbers as floats, which nkic takes for integers in no version."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    whole = nl.ndarray((128, 512), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=whole, value=2)
    nisa.memset(whole[:, 0:1], -3)
    nisa.memset(whole[:, 1:2], 0.5)
    nisa.memset(x, 4.0)
    nisa.tensor_tensor(x, x, whole, nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
