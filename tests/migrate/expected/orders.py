# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
# unproven: affine_select
"""Orders of arguments of 0.2, and those of today, which stay."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.affine_select(y, [[-1, 512]], 1, x, -1.0, offset=0)
    nisa.affine_select(y, [[-1, 512]], 1, x, -1.0, nl.greater_equal, offset=7)
    nisa.affine_select(y, [[-1, 512]], 1, x, -1.0, nl.greater_equal)
    nisa.affine_select(y, [[-1, 512]], 1, x, -1.0, nl.greater_equal, 3)
    nisa.affine_select(
        y, [[-1, 512]], channel_multiplier=1, on_true_tile=x, on_false_value=-1.0, offset=5
    )
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_compute(out, [y, y], nl.add, [1.0, 1.0])
    nisa.dma_compute(out, [y, y], nl.add, [1.0, 1.0])
    nisa.dma_compute(out, [y, y], reduce_op=nl.add, scales=[1.0, 1.0])
    return out
