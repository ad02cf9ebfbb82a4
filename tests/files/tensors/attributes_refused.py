# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.load(a)
    return t.T  # error[unknown-attribute]: no attribute `T`
