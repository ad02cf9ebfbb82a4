# /// nkic
# nki = "beta2"
# [args]
# a = "float32[128, 512]"
# ///
"""Values and orders of arguments that changed with 0.3."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer="sbuf")
    whole = nl.ndarray((128, 512), dtype=nl.int32, buffer='sbuf')
    nisa.dma_copy(dst=x, src=a, dge_mode=0)
    nisa.memset(dst=whole, value=2)
    nisa.tensor_tensor(x, x, whole, nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
