# test: check
# args: a=float32[128,64]
"""A module that is not kernel source may be imported, not used."""
import torch

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    n = torch.zeros(3)  # error[host-module]: `torch` belongs to the module `torch`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
