# test: compile
# args: a=float32[128,512]
# nki: beta2
"""NKI 0.2 takes buffers by name."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer="sbuf")
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
