# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[200, 64]"
# ///
"""Masks of numbers, masks from below, and masked calls of parts and of expressions."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.zeros(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range((rows + 127) // 128):
        there = i < rows
        # Only where there are rows.
        tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        if there:
            nisa.dma_copy(tile[0:min(128, rows - i * 128)], a[nl.ds(i * 128, min(128, rows - i * 128)), 0:64])
        both = nl.ndarray((nl.par_dim(128), 2, 64), dtype=a.dtype, buffer=nl.sbuf)
        nisa.activation(both[0:min(128, rows - i * 128), 0, 0:64], nl.exp, tile[0:min(128, rows - i * 128)])
        both[0:min(128, rows - i * 128), 1, 0:64] = nl.multiply(tile[0:min(128, rows - i * 128)], 2.0)
        nl.store(out[nl.ds(i * 128, min(128, rows - i * 128)), 0:64], value=(both[:, 0] + both[:, 1])[0:min(128, rows - i * 128)])
        nl.store(out[nl.ds(i * 128, min(128, rows - i * 128)), 60:64], value=both[0:min(128, rows - i * 128), 1, 60:64])
    return out
