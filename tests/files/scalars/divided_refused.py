# test: check
# args: n=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(nl.load(n))
    i // 2  # error[register-value]: `+`, `-`, `*` and comparisons only
    return n
