# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[512, 256]"
# ///
"""Block dimensions, and decorators of Beta 1."""

import nki
import nki.language as nl
import nki.isa as nisa


def load_all(a):
    tiles = nl.ndarray((nl.par_dim(128), 4, 256), dtype=a.dtype, buffer=nl.sbuf)
    for i in range(4):
        nisa.dma_copy(tiles[:, i], a[i * 128 : (i + 1) * 128, :])
    return nl.add(tiles[:, 0], tiles[:, 3, :])


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    sums = nl.zeros((nl.par_dim(128), 2, 2, 256), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(2):
        nisa.dma_copy(sums[0:128, i, 1, 0:256], a[nl.ds(i * 128, 128), 0:256])
        sums[0:128, i, 1, 0:256] += sums[:, i, 0]
    nl.store(out, value=nl.add(sums[:, 1, 1], load_all(a)))
    return out
