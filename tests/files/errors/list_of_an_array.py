# test: check
# args: a=float32[128,64]
"""A list is as long as a list may be, also if an array makes it."""

import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    long = np.arange(1 << 21)
    places = long.tolist()  # error[too-large]: the list would have 2,097,152 elements
    nl.store(out, nl.load(a))
    return out
