# /// nkic
# kernel = "transpose_free"
# target = "trn2"
# [args]
# x = "float16[160, 24, 40]"
# ///
"""Transpose of the matrix inside every partition: an access pattern, no arithmetic.

An instruction reads its operand in any order that at most four [step, count] pairs describe.
Here both axes of the matrix are in the free dimension, so reading them in the other order is
a transpose: one copy instruction.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transpose_free(x):
    """Return x[C, R, S] as [C, S, R]; any C, if R * S elements fit in a partition twice."""
    C, R, S = x.shape
    y = nl.ndarray((C, S, R), dtype=x.dtype, buffer=nl.shared_hbm)

    for c in range(0, C, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, C - c)
        x_tile = nl.ndarray((p, R, S), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((p, S, R), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[c : c + p, :, :])
        # Reads element (s, r) at s + S * r, the same as
        # x_tile.ap(pattern=[[R * S, p], [1, S], [S, R]]). The writes are contiguous. If the store
        # reordered instead, its DMA rows would be single elements of two bytes.
        nisa.tensor_copy(dst=y_tile, src=x_tile.permute((0, 2, 1)))
        nisa.dma_copy(dst=y[c : c + p, :, :], src=y_tile)
    return y
