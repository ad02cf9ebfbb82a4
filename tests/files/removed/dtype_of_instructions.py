# test: check
# args: a=float32[128,64]
"""`dtype=` of instructions was passed until NKI 0.3, whatever dst is."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    nisa.tensor_copy(dst=x, src=x, dtype=nl.float32)  # error[removed-name]: there is no parameter `dtype` since NKI 0.4
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, x)
    return out
