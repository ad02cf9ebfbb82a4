# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""

import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    g = nl.tiles(a, tile_shape=(64, 32))
    g[0:4:2, 0]  # error[bad-index]: `0:4:2` selects no adjacent coordinates
    return a
