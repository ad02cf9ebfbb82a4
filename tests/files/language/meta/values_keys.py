# test: check
# args: a=float32[128,64]
# nki: beta2
"""The first compiled version of NKI has dicts with string keys and no sets."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    table = {1: 2}  # error[not-in-nki]: a dict key that is not a string
    named = {"one": 1}
    both = {*named}  # error[not-in-nki]: a set
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
