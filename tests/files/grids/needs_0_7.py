# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.6
"""Refused in grids, each with what to do."""
import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    nl.tiles(a, tile_shape=(128, 32))  # error[needs-profile]: `nki.language.tiles`: it was added in NKI 0.7
    return a
