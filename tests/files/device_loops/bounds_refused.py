# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    nl.fori_loop(0, 4.0, lambda i: None)  # error[loop-bounds]: ints or registers, not 4.0
    return a
