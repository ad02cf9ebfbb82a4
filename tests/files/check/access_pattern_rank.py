# test: check
# args: a=float32[128,1024]
"""Five free dimensions that no merging makes fewer; the instructions encode four."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 4, 4, 4, 4, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=x[:, ::2, ::2, ::2, ::2, ::2])  # error[access-pattern]: needs 5 free dimensions; the limit is 4
    out = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
