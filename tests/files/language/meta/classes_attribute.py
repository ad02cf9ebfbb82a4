# test: check
# args: a=float32[128,64]
"""An attribute that an object does not have is refused, with the one that is near."""
import nki
import nki.isa as nisa
import nki.language as nl

class Config(nl.NKIObject):
    tile_rows: int = 1


@nki.jit
def kernel(a):
    rows = Config().tile_row  # error[unknown-attribute]: a `Config` has no attribute `tile_row`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
