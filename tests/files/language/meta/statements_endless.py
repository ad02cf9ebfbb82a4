# test: check
# args: a=float32[128,64]
"""A loop without end ends."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    n = 1
    while n:
        n += 1  # error@-1[runaway]: 100,000,000 steps
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
