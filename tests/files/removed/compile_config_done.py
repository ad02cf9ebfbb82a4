# test: check
# args: a=float32[128,64]
"""What nkic does anyway, or does not do either."""
import nki
import nki.language as nl
from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig


rotation = AddressRotation.AUTO
assert rotation.name == "AUTO" and CompileConfig().dead_code_elim is None


@nki.jit(
    compile_config=CompileConfig(
        address_rotation=rotation, barrier_check=True, nki_alloc_fallback=False, dead_code_elim=False
    )
)
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
