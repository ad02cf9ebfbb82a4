# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    nisa.register_move(nisa.register_alloc(), nisa.scalar_load(n))  # error[register-value]: 64 bits
    return n
