# /// nkic
# kernel = "transpose"
# target = "trn2"
# [args]
# x = "float32[600, 300]"
# ///
"""Matrix transpose on TensorE.

Vector, Scalar and GpSimd engines work lane by lane: data stays on its partition. TensorE
is the engine that moves data across partitions; a transpose is a product with the identity
matrix, 128 x 128 at a time.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transpose(x):
    """Return the transpose [N, M] of x[M, N] in float32; any M and N."""
    assert x.dtype == nl.float32, f"PSUM tiles here are float32, x is {x.dtype}"
    M, N = x.shape
    P = nl.tile_size.pmax
    y = nl.ndarray((N, M), dtype=x.dtype, buffer=nl.shared_hbm)

    # A PSUM bank holds 512 float32 per partition: four transposed tiles side by side. Copying
    # the bank out at once, and storing it with one DMA of 2 KiB rows, costs a quarter of
    # copying and storing tile by tile.
    group = nl.tile_size.psum_bank_fmax
    for m in range(0, M, group):
        width = min(group, M - m)
        row_tiles = load_rows(x, m, width)
        for n in range(0, N, P):
            p = min(P, N - n)
            bank = nl.ndarray((p, width), dtype=nl.float32, buffer=nl.psum)
            for i in range(len(row_tiles)):
                rows = row_tiles[i].shape[0]
                nisa.nc_transpose(
                    dst=bank[:, i * P : i * P + rows], data=row_tiles[i][:, n : n + p]
                )
            # DMA cannot read PSUM, so the result is copied to SBUF first.
            y_tile = nl.ndarray((p, width), dtype=y.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=y_tile, src=bank)
            nisa.dma_copy(dst=y[n : n + p, m : m + width], src=y_tile)
    return y


def load_rows(x, first, count):
    """Load rows first ... first + count of x as a list of tiles of 128 rows, the last ragged."""
    N = x.shape[1]
    tiles = []
    for row in range(first, first + count, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, first + count - row)
        tile = nl.ndarray((p, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + p, :])
        tiles.append(tile)
    return tiles
