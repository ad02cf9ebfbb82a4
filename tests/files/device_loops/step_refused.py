# test: check
# args: a=float32[128,64]
# nki: 0.5
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    reg = nisa.register_alloc(2)
    for i in nl.dynamic_range(0, 8, reg):  # error[loop-bounds]: the step
        pass
    return a
