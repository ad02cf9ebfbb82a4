# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Operators that are passed to functions and kernels."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, fold=nl.maximum):  # left: `fold` is an operator
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = combined(nl.load(a), nl.multiply)
    tile = combined(tile)
    tile_2 = nl.ndarray((tile.shape[0], 1), dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(tile_2, fold, tile, axis=1, keepdims=True)
    nl.store(out, value=tile_2)
    return out


def combined(tile, op=nl.add):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(out[...], tile, tile, op=op)
    return out


def check(a):
    return np.allclose(kernel(a, nl.maximum), kernel[1](a, fold=nl.maximum))
