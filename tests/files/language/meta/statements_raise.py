# test: check
# args: a=float32[128,64]
"""So does an exception that the kernel raises."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    raise ValueError(f"{a.shape[0]} rows")  # error[kernel-raised]: ValueError: 128 rows
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
