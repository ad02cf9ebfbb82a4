# test: check
# args: a=float32[128,64]
"""A value that needs one that comes after it."""
import nki
import nki.isa as nisa
import nki.language as nl

ROWS = COLUMNS * 2  # error[unknown-name]: `COLUMNS` is not defined
COLUMNS = ROWS // 2


@nki.jit
def kernel(a):
    tile = nl.ndarray((ROWS, 64), dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
