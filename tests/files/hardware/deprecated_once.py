# test: check
# args: a=float32[128,64]
"""A deprecated name is reported once."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    for i in nl.affine_range(2):  # warning[NKI0270]: `nki.language.affine_range` is deprecated
        nisa.tensor_copy(dst=x, src=x)
    for i in nl.affine_range(2):
        nisa.tensor_copy(dst=x, src=x)
    for i in nl.static_range(2):  # warning[NKI0270]: `nki.language.static_range` is deprecated
        nisa.tensor_copy(dst=x, src=x)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
