# test: check
# args: a=float32[128,64]
# nki: 0.6
import nki
import nki.language as nl
from nki.compiler import CompileConfig  # error[needs-profile]: NKI 0.6 has no `nki.compiler.CompileConfig`: it was added in NKI 0.7


@nki.jit(compile_config=CompileConfig())
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
