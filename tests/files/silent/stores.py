# test: compile
# args: x=float32[200,64] n=int32[1,1]
"""Stores over others that are meant: something of each is used."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, n):
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    # The last tile overlaps the one before it.
    tail = nl.ndarray((200, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in (0, 72):
        nisa.dma_copy(dst=t, src=x[start : start + 128, :])
        nisa.dma_copy(dst=tail[start : start + 128, :], src=t)
    # Rows that indices choose are written over all rows.
    rows = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=rows, src=t)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(index, 3)
    nisa.dma_copy(dst=rows.ap([[64, 128], [1, 64]], vector_offset=index, indirect_dim=0), src=t)
    # A loop that may not run writes over the first store, and each iteration over the one before.
    steps = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=steps, src=t)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count, src=n)
    register = nisa.register_alloc(0)
    nisa.register_load(register, count)

    def step(i):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=steps, src=t)

    nl.fori_loop(0, register, step)
    # A sum in HBM reads what it is added to.
    total = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=total, src=t)
    nisa.dma_compute(dst=total, srcs=[total, t], reduce_op=nl.add)
    return tail, rows, steps, total
