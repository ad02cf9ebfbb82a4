# test: compile
# args: a=float32[128,512]
# kernel: kernel
"""Today a decorated kernel may be called in another one."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def clear(tile):
    nisa.memset(dst=tile, value=0.0)


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    clear(x)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
