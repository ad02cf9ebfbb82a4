# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""
import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    g = nl.tiles(a, tile_shape=(128, 32))
    g[2, 0]  # error[index-out-of-bounds]: coordinate 2 is outside of 0 to 1; the grid has shape (2, 2)
    return a
