# test: check
# args: a=float32[128,64]
"""A key that is not there says which are."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    sizes = {"small": 64, "large": 128}
    last = sizes["smal"]  # error[wrong-index]: the dict has no key 'smal'; it has 'small', 'large'
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
