# test: check
# args: n=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(nl.load(n))
    i + nisa.register_alloc(1)  # error[register-value]: a register does not support arithmetic, not even with a scalar
    return n
