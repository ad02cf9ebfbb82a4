# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, c):
    g = nl.tiles(a, tile_shape=(128, 32))
    x = nl.ndarray((128, 32), a.dtype, nl.sbuf)
    nisa.dma_copy(x, g[0, 0])  # error[argument-kind]: `src` is an NkiTileGrid
    return a
