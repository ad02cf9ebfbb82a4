# test: check
# args: a=float32[128,64]
import nki
import nki.language as nl
from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig


@nki.jit(
    compile_config=CompileConfig(prefetch_auto=1),  # error[argument-kind]: `prefetch_auto=` takes True or False
)
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
