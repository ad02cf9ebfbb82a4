# test: check
# args: n=int64[1,1] m=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n, m):
    i, t = nisa.scalar_load(m), nl.load(n)
    nisa.scalar_store(t, i)  # error[dtype-mismatch]: `dst` is int64, but the scalar is int32
    return n
