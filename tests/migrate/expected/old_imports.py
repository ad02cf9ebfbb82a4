# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Imports of the former namespace."""

import numpy as np
import nki  # the root
import nki.isa as nisa
from nki import language as nl
import nki.typing
from nki.language import par_dim


@nki.jit
def kernel(a):
    x = nl.ndarray((par_dim(128), 512), dtype=np.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nki.language.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
