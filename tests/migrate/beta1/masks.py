# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[300, 700]"
# ///
"""Masks that are bounds, of rows and of columns."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(512)[None, :]
    for i in nl.affine_range(math.ceil(rows / 128)):
        for j in nl.affine_range(math.ceil(columns / 512)):
            mask = (i * 128 + i_p < rows) & (j * 512 + i_f < columns)
            tile = nl.load(a[i * 128 + i_p, j * 512 + i_f], mask=mask)
            tile = nisa.activation(op=nl.exp, data=tile, mask=mask)
            double = nl.add(tile, tile, mask=mask)
            nl.store(out[i * 128 + i_p, j * 512 + i_f], value=double, mask=mask)
    return out
