# test: check
# args: n=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(nl.load(n))
    (i < 2) + 1  # error[register-value]: the result of a comparison of scalars cannot be used
    return n
