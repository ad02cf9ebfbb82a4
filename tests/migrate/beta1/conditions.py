# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[200, 64]"
# ///
"""Masks of numbers, masks from below, and masked calls of parts and of expressions."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.zeros(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(64)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        there = i < rows
        part = i * 128 + i_p < rows
        # Only where there are rows.
        tile = nl.load(a[i * 128 + i_p, i_f], mask=part & there)
        both = nl.ndarray((2, nl.par_dim(128), 64), dtype=a.dtype, buffer=nl.sbuf)
        both[0, i_p, i_f] = nisa.activation(nl.exp, tile, mask=part)
        both[1, i_p, i_f] = nl.multiply(tile, 2.0, mask=part)
        nl.store(out[i * 128 + i_p, i_f], value=both[0] + both[1], mask=part)
        nl.store(out[i * 128 + i_p, i_f], value=both[1, :, :], mask=part & (i_f >= 60))
    return out
