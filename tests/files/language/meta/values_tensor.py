# test: check
# args: a=float32[128,64]
"""What a tensor holds is not known while the kernel is compiled."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    n = int(a[0:1, 0:1])  # error[tensor-value]: cannot be converted to a number
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
