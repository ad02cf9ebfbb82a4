"""exp(x - maximum) and its sum in one instruction of ScalarE."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax(x):
    m, n = x.shape
    y = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, m, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, m - row)
        tile = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + p, :])
        least, total, inverse = (nl.ndarray((p, 1), nl.float32, buffer=nl.sbuf) for _ in range(3))
        nisa.tensor_reduce(dst=least, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation(
            dst=tile,
            op=nl.exp,
            data=tile,
            bias=least,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=y[row : row + p, :], src=tile)
    return y
