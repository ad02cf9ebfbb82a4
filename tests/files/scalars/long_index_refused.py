# test: check
# args: n=int64[1,1] m=int32[4,8]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n, m):
    out = nl.ndarray((1, 8), nl.int32, nl.sbuf)
    nisa.dma_copy(out, m.ap([[8, 1], [1, 8]], scalar_offset=nl.load(n)))  # error[dtype-not-supported]: is int64, but must be an integer
    return n  # warning[input-returned]: which nothing writes
