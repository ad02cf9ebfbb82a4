# test: check
# args: a=float32[128,64]
"""A slice that leaves its dimension, and a pattern that leaves its tensor."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    half = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=half, src=tile[:, 48:80])  # error[index-out-of-bounds]: 80
    nisa.tensor_copy(dst=half, src=tile.ap([[64, 128], [2, 32]], offset=2))  # error[pattern-out-of-bounds]: 64
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
