# /// nkic
# kernel = "top8"
# target = "trn2"
# [args]
# x = "float32[200, 5000]"
# ///
"""The eight largest values of every row, in two rounds.

max8 finds the eight largest of up to 16384 values per partition. Applying it to column tiles
and then to their results gives the same values, works for rows of any length, and lets
VectorE search one tile while the next one loads.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TOP = 8  # the number of results of max8, and its minimum number of inputs
TILE_F = 2048  # rows of 8 KiB


@nki.jit
def top8(x):
    """Return the eight largest of each row of x[M, N], descending: [M, 8]. N >= 8."""
    M, N = x.shape
    assert N >= TOP, f"N = {N} must be at least {TOP}"
    starts = tile_starts(N)
    y = nl.ndarray((M, TOP), dtype=x.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, M - m)
        # Eight candidates from every column tile.
        found = nl.ndarray((p, len(starts) - 1, TOP), dtype=x.dtype, buffer=nl.sbuf)
        for i in range(len(starts) - 1):
            begin, end = starts[i], starts[i + 1]
            x_tile = nl.ndarray((p, end - begin), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x_tile, src=x[m : m + p, begin:end])
            nisa.max8(dst=found[:, i, :], src=x_tile)

        best = nl.ndarray((p, TOP), dtype=x.dtype, buffer=nl.sbuf)
        nisa.max8(dst=best, src=found)
        nisa.dma_copy(dst=y[m : m + p, :], src=best)
    return y


def tile_starts(N):
    """Return the starts of column tiles, then N. A remainder below 8 joins the last tile."""
    starts = [0]
    while N - starts[-1] >= TILE_F + TOP:
        starts.append(starts[-1] + TILE_F)
    starts.append(N)
    return starts
