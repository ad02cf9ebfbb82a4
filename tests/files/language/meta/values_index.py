# test: check
# args: a=float32[128,64]
"""An index beyond a list says how long the list is."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    sizes = [1, 2, 3]
    last = sizes[len(sizes)]  # error[wrong-index]: list index out of range; its length is 3
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
