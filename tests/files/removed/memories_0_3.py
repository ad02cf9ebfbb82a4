# test: check
# args: a=float32[128,512]
# nki: 0.3
"""Names of memories that went with Beta 2."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    # error@+1[unknown-name]: `hbm` is not defined
    out = hbm.view(dtype=a.dtype, shape=a.shape)
    nisa.dma_copy(dst=out, src=x)
    return out
