# test: check
# args: a=float32[128,64]
import nki
import nki.language as nl
from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig


@nki.jit(
    compile_config=SpecializationConfig(),  # error[argument-kind]: `compile_config=` takes a nki.compiler.CompileConfig
)
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
