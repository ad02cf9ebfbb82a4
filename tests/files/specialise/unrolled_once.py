# test: check
# args: a=float32[128,64]
"""One mistake in an unrolled loop is one error, however often the loop turns."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        nisa.dma_copy(dst=tile, src=a[:, i : i + 1])  # error[element-count-mismatch]: 128
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
