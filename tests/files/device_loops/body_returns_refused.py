# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    nl.fori_loop(0, 4, lambda i: 3)  # error[loop-result]: must return nothing; this one returned 3
    return a
