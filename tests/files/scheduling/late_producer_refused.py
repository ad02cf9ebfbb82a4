# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    first = nisa.reciprocal(dst=x, data=x)
    second = nisa.reciprocal(dst=x, data=x)
    first.depends_on(second)  # error[bad-schedule]: or for one that comes after it
    return a
