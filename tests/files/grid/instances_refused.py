# test: check
# args: a=float32[128,64]
# grid: 2
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    shape = (64 + 64 * nl.program_id(0), 64)
    out = nl.ndarray(shape, a.dtype, buffer=nl.shared_hbm)  # error[shared-tensor-differs]: instance (1,)
    nl.store(out[0:64], nl.load(a[0:64]))
    return out
