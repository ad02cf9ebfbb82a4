# test: compile
# args: a=float32[128,64]
# kernel: copying(2)
"""A call makes the kernel; in later versions, too."""

import nki
import nki.isa as nisa
import nki.language as nl


def copying(times):
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        for _ in range(times):
            nisa.dma_copy(dst=tile, src=a)
        nisa.dma_copy(dst=out, src=tile)
        return out

    return kernel
