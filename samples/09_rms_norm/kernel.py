# /// nkic
# kernel = "rms_norm"
# target = "trn2"
# [args]
# x = "bfloat16[200, 2048]"
# weight = "bfloat16[2048]"
# [consts]
# eps = 1e-6
# ///
"""RMS normalisation of rows: the sum of squares on ScalarE, the products on VectorE.

Two engines share the work, so that two row tiles are processed at a time: while VectorE scales
one tile, ScalarE squares the next.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rms_norm(x, weight, eps=1e-6):
    """x / sqrt(mean(x * x) + eps) * weight over the rows of x[M, N]; weight[N]."""
    M, N = x.shape
    assert weight.shape == (N,), f"weight{weight.shape} must have one element per column, ({N},)"
    P = nl.tile_size.pmax
    y = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)

    # The same row on every partition, loaded once.
    weight_rows = nl.ndarray((min(P, M), N), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weight_rows, src=weight.reshape((1, N)).broadcast(0, min(P, M)))

    for m in range(0, M, P):
        p = min(P, M - m)
        x_tile = nl.ndarray((p, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[m : m + p, :])

        # Only the sum is needed. The squares are written to the tile that y will overwrite.
        y_tile = nl.ndarray((p, N), dtype=y.dtype, buffer=nl.sbuf)
        squares = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=y_tile,
            op=nl.square,
            data=x_tile,
            reduce_op=nl.add,
            reduce_res=squares,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        rstd = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=rstd, op=nl.rsqrt, data=squares, scale=1.0 / N, bias=eps)

        nisa.scalar_tensor_tensor(
            dst=y_tile,
            data=x_tile,
            op0=nl.multiply,
            operand0=rstd,
            op1=nl.multiply,
            operand1=weight_rows[0:p, :],
        )
        nisa.dma_copy(dst=y[m : m + p, :], src=y_tile)
    return y
