# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    t = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(t, n)  # error[dtype-mismatch]: `src` is int64 and `dst` is int32
    return n  # warning[input-returned]: which nothing writes
