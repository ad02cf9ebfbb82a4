# test: compile
# args: a=float32[128,512]
# const: manager=1
"""A name that is not defined is wrong where it is evaluated, as in Python; else a warning."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(a, manager):
    if manager is None:
        manager = Manager(200)  # warning[NKI0201]: `Manager` is not defined
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
