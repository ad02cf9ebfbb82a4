# test: check
# args: a=float32[128,64]
"""A relative import without a file is said where it is used."""
from . import nothing

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    n = nothing.size  # error[import-failed]: there is no file for the module `.`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
