# test: compile
# args: a=float32[128,512]
# nki: beta2
"""Memories without their module, as the first examples of NKI Beta 2 have them."""
import nki
import nki.isa as nisa


@nki.jit
def kernel(a):
    x = sbuf.view(dtype=a.dtype, shape=a.shape)
    nisa.dma_copy(dst=x, src=a)
    out = hbm.view(dtype=a.dtype, shape=a.shape)
    nisa.dma_copy(dst=out, src=x)
    return out
