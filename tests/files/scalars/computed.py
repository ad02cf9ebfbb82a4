# test: compile
# args: a=float32[128,64] n=int32[1,1]
# nki: 0.7
"""Scalars as operands, offsets, bounds and counters."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    x = nl.load(a)
    count = nl.load(n)
    i = nisa.scalar_load(count)
    assert i.dtype == nl.int32
    i = 2 * i + 1 - 3
    moved = nl.ndarray((128, 4), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=moved, src=x[:, nl.ds(-(-i), 4)])

    def body(k):
        nisa.tensor_scalar(dst=moved, data=moved, op0=nl.add, operand0=1.0)
        nisa.tensor_copy(dst=x[:, nl.ds(k * 4, 4)], src=moved)

    nl.fori_loop(0, i + 1, body)
    nisa.scalar_store(count, i)
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    last = nl.ndarray(n.shape, n.dtype, buffer=nl.shared_hbm)
    nl.store(last, count)
    return out, last
