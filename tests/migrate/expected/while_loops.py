# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Loops that a register ends, beside those that Python ends."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=left, value=3)
    register = nisa.register_alloc(3)

    def body(register):
        # One turn.
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(register, left)
        return register

    nl.while_loop(register, body)
    columns = 2
    while columns:
        columns -= 1
        nisa.memset(dst=x[:, columns : columns + 1], value=0.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
