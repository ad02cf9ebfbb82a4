# test: check
# args: a=float32[128,64]
"""A failing assertion gives its own text."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows = a.shape[0]
    assert rows % 3 == 0, f"{rows} rows are not a multiple of 3"  # error[assertion-failed]: 128 rows are not a multiple of 3
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
