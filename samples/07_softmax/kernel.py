# /// nkic
# kernel = "softmax"
# target = "trn2"
# [args]
# x = "float32[200, 1000]"
# ///
"""Softmax over rows: maximum, exponential and sum, division.

ScalarE computes func(in * scale + bias), with a bias per partition, and can sum its results
in the same pass. That makes exp(x - max) and its sum one instruction.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax(x):
    """Return exp(x) / sum(exp(x)) over the columns of x[M, N]; any M; N must fit in SBUF."""
    M, N = x.shape
    y = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, M - m)
        x_tile = nl.ndarray((p, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[m : m + p, :])

        # exp overflows float32 above 88; after subtracting the row's maximum, its argument is
        # never positive. negate= gives the maximum the sign that a bias needs.
        neg_max = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=neg_max, op=nl.maximum, data=x_tile, axis=1, negate=True)

        exps = nl.ndarray((p, N), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=exps,
            op=nl.exp,
            data=x_tile,
            bias=neg_max,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )

        # No engine divides: one reciprocal per row, then a multiplication by it.
        inverse = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        y_tile = nl.ndarray((p, N), dtype=y.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y_tile, data=exps, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=y[m : m + p, :], src=y_tile)
    return y
