# test: check
# args: a=float32[256,64]
# nki: 0.7
"""Dimensions that are not tiled are for HBM."""
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 2, 64), nl.float32, nl.sbuf)
    nl.tiles(t, tile_shape=(2, 32))  # error[bad-shape]: in sbuf all dimensions are tiled
    return a
