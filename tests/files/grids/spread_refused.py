# test: check
# args: a=float32[256,64] c=float32[2,256,64]
# nki: 0.7
"""Refused in grids, each with what to do."""

import nki
import nki.language as nl


@nki.jit
def kernel(a, c):
    kinds = {"buffer": nl.sbuf, "dtype": a.dtype}
    g = nl.alloc_tiles(tile_shape=(128, 32), element_shape=a.shape, **kinds)
    g[:, 0].data  # error[bad-index]: is spread over several tiles of sbuf
    return a
