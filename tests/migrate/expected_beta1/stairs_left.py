# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[64, 256]"
# ///
"""Masks over a flattened index where what they hide is read, or where rows are not whole."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(64)[:, None]  # left: there is no `nki.language.arange`
    i_f = nl.arange(256)[None, :]  # left: there is no `nki.language.arange`
    y = nl.load(a)
    x = nl.load(a[i_p, i_f], mask=256 * i_p + i_f < 1000)  # left: the mask is not an extent
    y[...] = x
    nl.store(out[i_p, i_f], value=y, mask=128 * i_p + i_f < 1000)  # left: the mask is not an extent
    return out
