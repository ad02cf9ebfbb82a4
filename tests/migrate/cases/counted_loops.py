# /// nkic
# nki = "0.5"
# [args]
# a = "float32[128, 512]"
# ///
"""Loops with a counter on the device, one in the other, and one with a bound in a register."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    # Four columns become zero,
    # one after the other.
    for i in nl.dynamic_range(0, 8, 2):  # every other one
        nisa.memset(dst=x.ap([[512, 128], [1, 1]], scalar_offset=i, indirect_dim=1), value=0.0)
    for i in nl.dynamic_range(2):
        # The outer body.
        scale = 2.0
        for j in nl.dynamic_range(stop=3, start=1):
            nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=scale)
    turns = nisa.register_alloc(3)
    for k in nl.dynamic_range(turns): nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)
    count = 1
    for k in nl.dynamic_range(2):
        count += 1
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(count))
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(count))
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
