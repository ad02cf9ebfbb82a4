# test: check
# args: a=float32[128,64]
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    nl.fori_loop(0, 4, lambda i: None, step=0)  # error[loop-bounds]: at least 1, not 0
    return a
