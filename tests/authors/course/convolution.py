"""One product for each tap and tile of channels, all into one PSUM bank."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def convolution(x, w):
    channels, length = x.shape
    taps, _, made = w.shape
    times = length - taps + 1
    y = nl.ndarray((made, times), dtype=x.dtype, buffer=nl.shared_hbm)
    rows, most = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    tiles = []
    for c in range(0, channels, rows):
        p = min(rows, channels - c)
        x_tile = nl.ndarray((p, length), dtype=x.dtype, buffer=nl.sbuf)
        w_tile = nl.ndarray((p, taps, made), dtype=w.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[c : c + p, :])
        nisa.dma_copy(dst=w_tile, src=w[:, c : c + p, :].permute((1, 0, 2)))
        tiles.append((x_tile, w_tile))
    for o in range(0, made, rows):
        q = min(rows, made - o)
        for t in range(0, times, most):
            f = min(most, times - t)
            psum = nl.ndarray((q, f), dtype=nl.float32, buffer=nl.psum)
            for i, (x_tile, w_tile) in enumerate(tiles):
                for tap in range(taps):
                    nisa.nc_matmul(
                        dst=psum,
                        stationary=w_tile[:, tap, o : o + q],
                        moving=x_tile[:, t + tap : t + tap + f],
                        accumulate=(i > 0 or tap > 0),
                    )
            out = nl.ndarray((q, f), dtype=y.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=out, src=psum)
            nisa.dma_copy(dst=y[o : o + q, t : t + f], src=out)
    return y
