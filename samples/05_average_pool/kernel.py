# /// nkic
# kernel = "average_pool"
# target = "trn2"
# [args]
# x = "float32[160, 30, 31]"
# [consts]
# pool = 3
# ///
"""2-D average pooling: windows by access pattern, one reduction for all of them.

No window is ever copied out. The reduction reads the image through a pattern of four free
dimensions, the most that an instruction can have: the window (down, across), and the element in
the window (down, across).
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def average_pool(x, pool):
    """Average pool x pool windows, stride pool: x[C, H, W] -> [C, H // pool, W // pool].

    Rows and columns that fill no window are ignored.
    """
    C, H, W = x.shape
    assert pool <= H and pool <= W, f"a window of {pool} does not fit in an image of {H} x {W}"
    out_h, out_w = H // pool, W // pool
    y = nl.ndarray((C, out_h, out_w), dtype=x.dtype, buffer=nl.shared_hbm)

    for c in range(0, C, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, C - c)  # channels are independent: one per partition
        image = nl.ndarray((p, H, W), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=image, src=x[c : c + p, :, :])

        windows = image.ap(
            pattern=[
                [H * W, p],  # partition
                [pool * W, out_h],  # next window down
                [pool, out_w],  # next window across
                [W, pool],  # next row of the window
                [1, pool],  # next element of the row
            ]
        )
        sums = nl.ndarray((p, out_h, out_w), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=sums, op=nl.add, data=windows, axis=(3, 4))

        means = nl.ndarray((p, out_h, out_w), dtype=y.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=means, data=sums, op0=nl.multiply, operand0=1.0 / (pool * pool))
        nisa.dma_copy(dst=y[c : c + p, :, :], src=means)
    return y
