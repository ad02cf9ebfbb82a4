# test: check
# args: a=float32[128,64]
"""A frozen dataclass stays as it was made."""
from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl

@dataclass(frozen=True)
class Fixed:
    n: int = 3


@nki.jit
def kernel(a):
    fixed = Fixed()
    fixed.n = 4  # error[wrong-value]: cannot assign to field 'n'
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
