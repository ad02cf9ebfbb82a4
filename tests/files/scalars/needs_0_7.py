# test: check
# args: n=int32[1,1]
# nki: 0.6
import nki
import nki.isa as nisa


@nki.jit
def kernel(n):
    nisa.scalar_load(n)  # error[needs-profile]: `nki.isa.scalar_load`: it was added in NKI 0.7
    return n
