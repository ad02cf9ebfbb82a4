# test: check
# args: a=float32[128,64]
"""A call that does not fit says what the function takes."""
import nki
import nki.isa as nisa
import nki.language as nl

def add(x, y, *, scale=1):
    return (x + y) * scale


@nki.jit
def kernel(a):
    n = add(1, 2, 3)  # error[wrong-call]: takes 2 positional arguments but 3 were given
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
