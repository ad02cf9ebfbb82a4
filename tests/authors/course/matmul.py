"""Panels of a and b stay in SBUF; a PSUM bank sums the products over K."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(a_t, b):
    k, m = a_t.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=a_t.dtype, buffer=nl.shared_hbm)
    most_m, most_n = nl.tile_size.gemm_stationary_fmax, nl.tile_size.gemm_moving_fmax
    left, right = load(a_t), load(b)
    for i in range(0, m, most_m):
        p = min(most_m, m - i)
        for j in range(0, n, most_n):
            f = min(most_n, n - j)
            psum = nl.ndarray((p, f), dtype=nl.float32, buffer=nl.psum)
            for t in range(len(left)):
                nisa.nc_matmul(
                    dst=psum,
                    stationary=left[t][:, i : i + p],
                    moving=right[t][:, j : j + f],
                    accumulate=(t > 0),
                )
            tile = nl.ndarray((p, f), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=psum)
            nisa.dma_copy(dst=out[i : i + p, j : j + f], src=tile)
    return out


def load(x):
    """Return x[K, columns] as a list of tiles of 128 rows; the last may have fewer."""
    tiles = []
    for row in range(0, x.shape[0], nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, x.shape[0] - row)
        tile = nl.ndarray((p, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + p, :])
        tiles.append(tile)
    return tiles
