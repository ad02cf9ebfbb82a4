# test: check
# args: a=float32[128,64]
"""Configurations of the compiler behind NKI: what asks for more than nkic does is a warning."""
import nki
import nki.language as nl
from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig


@nki.jit(
    compile_config=CompileConfig(prefetch_auto=True),  # warning[jit-option]: `prefetch_auto` of `compile_config=` has no meaning for nkic
    specialization_config=SpecializationConfig(allow_nested_config_override=True),
)
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
