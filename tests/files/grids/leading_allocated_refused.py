# test: check
# args: a=float32[256,64]
# nki: 0.7
"""Dimensions that are not tiled are for HBM."""
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    nl.alloc_tiles(tile_shape=(64, 32), element_shape=(2, 64, 64), buffer=nl.psum, dtype=nl.float32)  # error[bad-shape]: in psum all dimensions are tiled
    return a
