# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[4, 64, 256]"
# [consts]
# count = 20000
# ///
"""Masks over a flattened index, which leave whole rows and a part of one."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, count):
    out = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    rows, columns = a.shape[1:]
    i_p = nl.arange(rows)[:, None]
    i_f = nl.arange(columns)[None, :]
    for k in nl.affine_range(4):
        # Where nothing is computed.
        nothing = nl.zeros((rows, columns), dtype=nl.bfloat16)
        nl.store(out[k], value=nothing)
        place = k * rows * columns + columns * i_p + i_f
        x = nl.load(a[k, i_p, i_f], mask=place < count)
        y = nl.load(a[3 - k, i_p, i_f], dtype=nl.bfloat16, mask=place < count)
        # The sum of two.
        total = nl.add(x, y, mask=place < count)
        nl.store(out[k, i_p, i_f], value=total, mask=place < count)
    return out
