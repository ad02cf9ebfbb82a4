# test: check
# args: n=int64[1,1] m=int32[1,8]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n, m):
    i = nisa.scalar_load(n)
    t = nl.load(m)
    t.ap([[8, 1], [1, 1]], scalar_offset=i)  # error[register-value]: a scalar of nl.int64
    return n
