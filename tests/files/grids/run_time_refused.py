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
    g[nisa.register_alloc(1), 0]  # error[bad-index]: a coordinate of a grid must be an int or a
    return a
