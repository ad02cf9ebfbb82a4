# test: check
# args: n=int64[1,1] m=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n, m):
    i, j = nisa.scalar_load(n), nisa.scalar_load(m)
    i + j  # error[register-value]: a scalar of nl.int64 with one of nl.int32
    return n
