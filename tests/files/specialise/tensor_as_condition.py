# test: compile
# args: a=float32[128,512]
"""A whole tensor is true as any object is; a part of one asks for values nobody knows yet."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(a, b=None):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    if a and not b:  # warning[NKI0242]: always true because it is a tensor, whatever its values are
        nisa.dma_copy(dst=tile, src=a)
    if tile[0:1, 0:1]:  # error[NKI0242]: are not known while the kernel is compiled
        nisa.memset(dst=tile, value=0.0)
    return a
