# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[1, 64]"
# ///
"""Numbers and tiles that are assigned at partitions where no engine begins."""

import nki
import nki.language as nl
import nki.isa as nisa


@nki.jit
def kernel(a):
    out = nl.ndarray((16, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.zeros((16, 64), dtype=a.dtype, buffer=nl.sbuf)
    row = nl.load(a)
    for k in range(4):
        nisa.dma_copy(tile[k:k + 1, k + 1:k + 2], nl.full((1, 1), 2 * k, dtype=tile.dtype))  # one element
    nisa.dma_copy(tile[5:7, 0:64], nl.full(tile[5:7, 0:64].shape, 1.5, dtype=tile.dtype))
    nisa.dma_copy(tile[8:9, 0:32], row[:, 32:64])
    tile[0:1, 16:48] = row[:, 32:64]
    nl.store(out, value=tile)
    return out
