# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Parameters that are gone, where the version before has them."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_copy(dst=y, src=x)
    nisa.tensor_scalar(x, y, op0=nl.add, operand0=1.0, engine=nisa.engine.vector)
    nisa.activation(
        dst=x,
        data=x,
        op=nl.exp,  # as dst
    )
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
