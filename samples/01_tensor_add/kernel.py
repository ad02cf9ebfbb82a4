# /// nkic
# kernel = "tensor_add"
# target = "trn2"
# [args]
# a = "float32[300, 2500]"
# b = "float32[300, 2500]"
# ///
"""Matrix addition: the basic structure of every kernel.

Matrices are in HBM, and engines read SBUF. A kernel divides its matrices into tiles
of at most 128 rows (one row per SBUF partition), loads a tile by DMA, computes, and stores
the result by DMA.
"""

import nki
import nki.isa as nisa
import nki.language as nl

# Columns per tile. A DMA moves a tile row by row with a fixed cost per row, so rows should
# have 2 KiB or more; 2048 float32 are 8 KiB. Three such tiles take 24 of a partition's
# 207 KiB, which leaves room to load the next tiles while these are added.
TILE_F = 2048


@nki.jit
def tensor_add(a, b):
    """a + b for matrices a, b[M, N] of one dtype; any M and N."""
    assert a.shape == b.shape, f"a{a.shape} and b{b.shape} must have the same shape"
    assert a.dtype == b.dtype, f"a is {a.dtype} and b is {b.dtype}: they must be the same"
    M, N = a.shape
    P = nl.tile_size.pmax
    c = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, P):
        p = min(P, M - m)  # the last tile has the remaining rows
        for n in range(0, N, TILE_F):
            f = min(TILE_F, N - n)
            a_tile = nl.ndarray((p, f), dtype=a.dtype, buffer=nl.sbuf)
            b_tile = nl.ndarray((p, f), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a_tile, src=a[m : m + p, n : n + f])
            nisa.dma_copy(dst=b_tile, src=b[m : m + p, n : n + f])

            # New tiles in every iteration: no iteration waits for its predecessor to free memory.
            c_tile = nl.ndarray((p, f), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=c_tile, data1=a_tile, data2=b_tile, op=nl.add)
            nisa.dma_copy(dst=c[m : m + p, n : n + f], src=c_tile)
    return c
