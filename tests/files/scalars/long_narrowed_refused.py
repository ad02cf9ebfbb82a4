# test: check
# args: n=int64[1,1] m=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n, m):
    i, t = nisa.scalar_load(n), nl.load(m)
    nisa.scalar_store(t, i)  # error[dtype-mismatch]: `dst` is int32, but the scalar is int64
    return n
