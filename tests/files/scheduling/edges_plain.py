# test: check
# args: a=float32[128,64]
# kernel: kernel
"""`-k kernel` is the kernel without the schedule, whose name does not exist."""
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


scheduled = kernel.with_schedule([("other", "recip")])
