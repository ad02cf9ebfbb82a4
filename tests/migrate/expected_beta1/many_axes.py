# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 4, 4, 4]"
# ///
"""Statements on more axes than instructions have, and one whose axes are neighbours."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 8, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    wide = nl.zeros((128, 8, 8, 8), dtype=a.dtype, buffer=nl.sbuf)
    half = 0.5
    # Between neighbours.
    for i in range(2):
        for j in range(2):
            wide.ap([[(wide.shape[1] * wide.shape[2]) * wide.shape[3], 128], [1, 2], [2 * (wide.shape[2] * wide.shape[3]), 3], [2 * wide.shape[3], 3], [2, 3]], offset=(i + 1) * (wide.shape[2] * wide.shape[3]) + (j + 1) * wide.shape[3] + 1)[...] = (
                half * tile.ap([[(tile.shape[1] * tile.shape[2]) * tile.shape[3], 128], [1, 2], [tile.shape[2] * tile.shape[3], 3], [tile.shape[3], 3], [1, 3]], offset=i * (tile.shape[2] * tile.shape[3]) + j * tile.shape[3])
                - 3 * half * tile.ap([[(tile.shape[1] * tile.shape[2]) * tile.shape[3], 128], [-1, 2], [tile.shape[2] * tile.shape[3], 3], [tile.shape[3], 3], [1, 3]], offset=(1 - i) * (tile.shape[2] * tile.shape[3]) + j * tile.shape[3] + 1)
            )
    wide[0:128, 0:1, 1:7, 1:7].reshape((128, 1, 3, 2, 3, 2)).permute((0, 1, 3, 5, 2, 4))[...] = tile.ap([[(tile.shape[1] * tile.shape[2]) * tile.shape[3], 128], [tile.shape[2] * tile.shape[3], 1], [tile.shape[3], 2], [1, 2], [tile.shape[3], 3], [1, 3]])
    nl.store(out, value=wide)
    return out
