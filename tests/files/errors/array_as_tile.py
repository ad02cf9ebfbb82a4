# test: check
# args: a=float32[4,4]
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def add(a):
    t = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=t, src=np.ones((4, 4), np.float32))  # error[argument-kind]: `src` is a NumPy array, but must be a tile
    return a
