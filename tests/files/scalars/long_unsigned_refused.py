# test: check
# args: n=uint32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    nisa.scalar_load(nl.load(n))  # error[dtype-not-supported]: a scalar is int32 or int64
    return n  # warning[input-returned]: which nothing writes
