# test: check
# args: a=float32[128,64]
"""A name that a module of kernel source does not have, with the one that is near."""
import nki
import nki.isa as nisa
import nki.language as nl
from helpers.rows import PARTITION  # error[import-failed]: has no `PARTITION` to import


@nki.jit
def kernel(a):
    tile = nl.ndarray((PARTITION, 64), dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
