# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    nisa.reciprocal(dst=x, data=x, name="recip")
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    return out


slow = kernel.with_schedule([("recip",)])  # error[bad-schedule]: a pair of names, not ('recip',)
