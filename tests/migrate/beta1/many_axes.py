# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 4, 4, 4]"
# ///
"""Statements on more axes than instructions have, and one whose axes are neighbours."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 8, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    wide = nl.zeros((128, 8, 8, 8), dtype=a.dtype, buffer=nl.sbuf)
    half = 0.5
    i_p, j_x, j_y, j_z, k_x, k_y, k_z = nl.mgrid[0:128, 0:2, 0:2, 0:2, 0:3, 0:3, 0:3]
    # Between neighbours.
    wide[i_p, 2 * k_x + 1 + j_x, 2 * k_y + 1 + j_y, 2 * k_z + 1 + j_z] = (
        half * tile[i_p, k_x + j_x, k_y + j_y, k_z + j_z]
        - 3 * half * tile[i_p, k_x - j_x + 1, k_y + j_y, k_z + (-1 * j_z + 1)]
    )
    i_p, i_x, j_y, j_z, k_y, k_z = nl.mgrid[0:128, 0:1, 0:2, 0:2, 0:3, 0:3]
    wide[i_p, i_x, 2 * k_y + 1 + j_y, 2 * k_z + 1 + j_z] = tile[i_p, i_x, k_y + j_y, k_z + j_z]
    nl.store(out, value=wide)
    return out
