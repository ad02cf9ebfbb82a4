# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 512]"
# ///
"""Operators that are passed to functions and kernels."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(a, fold=np.max):  # left: `fold` is an operator
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = combined(nl.load(a), np.multiply)
    tile = combined(tile)
    nl.store(out, value=nisa.tensor_reduce(fold, tile, axis=1, keepdims=True))
    return out


def combined(tile, op=np.add):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    out[...] = nisa.tensor_tensor(tile, tile, op=op)
    return out


def check(a):
    return np.allclose(kernel(a, np.max), kernel[1](a, fold=np.amax))
