# test: check
# args: a=float32[128,512]
"""Since NKI 0.3 an output in nl.hbm is refused."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=out, src=x)
    return out  # error[bad-return]: in hbm, which only the kernel can access
