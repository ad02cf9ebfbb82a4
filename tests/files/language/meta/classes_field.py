# test: check
# args: a=float32[128,64]
"""A field that a class does not have is refused by name."""
import nki
import nki.isa as nisa
import nki.language as nl

class Config(nl.NKIObject):
    tile_rows: int = 1


@nki.jit
def kernel(a):
    config = Config(tile_row=2)  # error[wrong-call]: no field `tile_row`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
