# test: check
# args: a=float32[128,512]
"""The partition dimension stands in front; nl.par_dim may mark it there."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    t = nl.ndarray((8, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)  # error[block-dimension]: the partition dimension is dimension 1 of (8, 128, 512)
    nisa.tensor_copy(dst=t[0], src=x)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
