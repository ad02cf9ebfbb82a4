# test: check
# args: a=float32[128,64]
# nki: 0.3
"""NKI 0.3 does not compare identities."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    if a is None:  # error[not-in-nki]: `is`
        pass
    if a is not None:  # error[not-in-nki]: `is not`
        pass
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
