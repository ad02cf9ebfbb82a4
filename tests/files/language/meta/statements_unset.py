# test: check
# args: a=float32[128,64]
"""A variable without a value is named."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    if a.shape[0] > 500:
        n = 1
    n += 1  # error[unset-variable]: `n` is used before it has a value
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
