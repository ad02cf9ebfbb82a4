# /// nkic
# nki = "0.5"
# [args]
# a = "float32[128, 512]"
# ///
"""Loops whose bodies are not functions."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    for i in nl.dynamic_range(2):  # left: `scale` is set in it and read after it
        scale = 2.0
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=scale)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=scale)
    for i in nl.dynamic_range(2):  # left: it has an `else`
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    else:
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=3.0)
    register = nisa.register_alloc(2)
    while register:  # left: its register `register` is read after it
        left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.memset(dst=left, value=0)
        nisa.register_load(register, left)
    kept = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.register_store(kept, register)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
