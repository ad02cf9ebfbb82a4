# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""
import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    nl.tiles(a, tile_shape=[128, 32])  # error[bad-shape]: tile_shape must be a tuple of at least 2 positive
    return a
