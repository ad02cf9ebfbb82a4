# test: compile
# args: a=float32[128,512]
# nki: 0.4
"""From NKI 0.4 on lists are arguments like others."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, sizes=[128, 512]):
    x = nl.ndarray(tuple(sizes), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
