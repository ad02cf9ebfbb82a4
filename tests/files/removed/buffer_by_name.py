# test: check
# args: a=float32[128,512]
# nki: 0.6
"""Since NKI 0.3 buffers are objects."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer="sbuf")  # error[bad-buffer]: NKI 0.6 does not take buffers by name
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
