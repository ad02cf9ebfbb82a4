# test: check
# args: a=float32[128,64]
"""A register has no value while the kernel is compiled."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    register = nisa.register_alloc(3)
    if register > 2:  # error[register-value]: the value of a register is known only on the device
        pass
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
