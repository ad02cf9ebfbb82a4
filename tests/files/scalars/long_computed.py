# test: compile
# args: a=float32[16,64] n=int64[1,1]
# nki: 0.7
"""Scalars of 64 bits: loaded, computed with, stored, and offsets in HBM."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    tile = nl.ndarray((1, 1), nl.int64, nl.sbuf)
    nisa.dma_copy(dst=tile, src=n)
    i = nisa.scalar_load(tile)
    assert i.dtype == nl.int64
    at = 3 * (i - 2**40) + (-i) * 0
    row = nl.ndarray((1, 64), a.dtype, nl.sbuf)
    nisa.dma_copy(dst=row, src=a.ap([[64, 1], [1, 64]], scalar_offset=at))
    out = nl.ndarray((2, 64), a.dtype, nl.shared_hbm)
    nisa.dma_copy(dst=out[0:1], src=row)
    nisa.dma_copy(dst=out[1:2], src=a[nl.ds(at + 1, 1)])
    last = nl.ndarray((1, 1), nl.int64, nl.shared_hbm)
    nisa.scalar_store(last, i * i)
    return out, last
