# test: compile
# args: a=float32[128,512]
"""One run reports every name that is not defined, once one of them is evaluated."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(a):
    tile = nl.ndarray(shape, dtype=a.dtype, buffer=nl.sbuf)  # error[NKI0201]: `shape` is not defined
    nisa.dma_copy(dst=tile, src=b)  # error[NKI0201]: `b` is not defined
    return c  # error[NKI0201]: `c` is not defined
