# test: compile
# args: a=float32[128,512]
# nki: 0.6
"""What still works and is going to be taken away."""
import nki
import nki.isa as nisa
import nki.language as nl
from nki.language import sequential_range  # warning[deprecated]: `nki.language.sequential_range`


@nki.jit
def kernel(a):
    x = nl.ndarray((128, nl.tile_size.psum_fmax), dtype=nl.float32, buffer=nl.sbuf)  # warning[deprecated]: `nki.language.tile_size.psum_fmax` is deprecated since NKI 0.4
    assert nl.tile_size.total_available_sbuf_size > 2048  # warning[deprecated]: total_available_sbuf_size` is
    nisa.dma_copy(dst=x, src=a)  # warning[NKI0531]: dma_copy writes `x`, which memset overwrites
    for i in nl.affine_range(2):  # warning[deprecated]: `nki.language.affine_range` is deprecated since NKI 0.6
        nisa.memset(dst=x[:, i : i + 1], value=0.0, engine=nisa.vector_engine)  # warning[deprecated]: `nki.isa.vector_engine`
    for i in sequential_range(2):
        nisa.memset(dst=x[:, i : i + 1], value=0.0)
    for i in nl.static_range(2):  # warning[deprecated]: `nki.language.static_range` is deprecated
        nisa.memset(dst=x[:, i : i + 1], value=0.0)
    for i in nl.dynamic_range(2):  # warning[deprecated]: a loop over `nl.dynamic_range` is deprecated
        nisa.memset(dst=x, value=0.0)
    register = nisa.register_alloc(0)
    while register:  # warning[deprecated]: a `while` loop over a register is deprecated since NKI 0.6
        nisa.memset(dst=x, value=0.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
