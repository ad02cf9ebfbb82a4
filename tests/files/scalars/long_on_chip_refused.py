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
    nisa.tensor_copy(t[:, 0:1], t[:, nl.ds(i, 1)])  # error[register-value]: indices on chip take 32
    return n
