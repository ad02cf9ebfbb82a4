# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    nisa.reciprocal(dst=x, data=x, name=3)  # error[argument-kind]: `name` is 3
    nisa.reciprocal(dst=x, data=x).depends_on("load")  # error[argument-kind]: depends_on takes
    return a
