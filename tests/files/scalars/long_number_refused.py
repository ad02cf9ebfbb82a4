# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(n)
    i + 2**63  # error[register-value]: does not fit the 64 bits
    return n
