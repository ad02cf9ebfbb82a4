# /// nkic
# nki = "0.7"
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
    def body(i):  # every other one
        nisa.memset(dst=x.ap([[512, 128], [1, 1]], scalar_offset=i, indirect_dim=1), value=0.0)

    nl.fori_loop(0, 8, body, 2)

    def body_3(i):
        # The outer body.
        scale = 2.0

        def body_2(j):
            nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=scale)

        nl.fori_loop(1, 3, body_2)

    nl.fori_loop(0, 2, body_3)
    turns = nisa.register_alloc(3)

    def body_4(k): nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)

    nl.fori_loop(0, turns, body_4)
    count = 1

    def body_5(k):
        nonlocal count
        count += 1
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(count))

    nl.fori_loop(0, 2, body_5)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(count))
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
