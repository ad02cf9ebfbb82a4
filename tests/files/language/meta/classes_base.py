# test: check
# args: a=float32[128,64]
"""A base is NKIObject or a class of the kernel."""
import nki
import nki.isa as nisa
import nki.language as nl

class Rows(list):  # error[wrong-base]: a kernel's class cannot inherit from `list`
    pass


@nki.jit
def kernel(a):
    rows = Rows()
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
