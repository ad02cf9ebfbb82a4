# /// nkic
# nki = "0.3"
# [args]
# a = "float32[128, 512]"
# ///
"""Imports of the former namespace."""

import numpy as np
import neuronxcc.nki as nki  # the root
import neuronxcc.nki.isa as nisa
from neuronxcc.nki import language as nl
import neuronxcc.nki.typing
from neuronxcc.nki.language import par_dim


@nki.jit
def kernel(a):
    x = nl.ndarray((par_dim(128), 512), dtype=np.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = neuronxcc.nki.language.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
