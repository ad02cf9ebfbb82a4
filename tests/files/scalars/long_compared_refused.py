# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(n)
    i < 3  # error[register-value]: scalars of nl.int64 cannot be compared
    return n
