# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""
import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    nl.blocks(a, tile_shape=(128, 32), block_shape=(2,))  # error[bad-shape]: block_shape has 1 dimensions
    return a
