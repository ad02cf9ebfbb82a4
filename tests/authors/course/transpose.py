"""Whole rows in, TensorE, one PSUM bank out at a time."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transpose(x):
    m, n = x.shape
    y = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    rows, most = nl.tile_size.pmax, nl.tile_size.psum_bank_fmax
    for first in range(0, m, most):
        width = min(most, m - first)
        tiles = []
        for row in range(first, first + width, rows):
            p = min(rows, first + width - row)
            tile = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[row : row + p, :])
            tiles.append(tile)
        for column in range(0, n, rows):
            q = min(rows, n - column)
            bank = nl.ndarray((q, width), dtype=x.dtype, buffer=nl.psum)
            for i, tile in enumerate(tiles):
                at = bank[:, i * rows : i * rows + tile.shape[0]]
                nisa.nc_transpose(dst=at, data=tile[:, column : column + q])
            out = nl.ndarray((q, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=out, src=bank)
            nisa.dma_copy(dst=y[column : column + q, first : first + width], src=out)
    return y
