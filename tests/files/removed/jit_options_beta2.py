# test: compile
# args: a=float32[128,512]
# nki: beta2
"""Options of nki.jit and outputs in nl.hbm, as NKI 0.2 had them."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit(mode="trace", platform_target="trn2")
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
