# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[2, 20, 16, 64]"
# rows = "int32[300, 1]"
# ///
"""Rows of a plane that a computed tile says, some of them hidden by a mask."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, rows):
    planes, _, _, width = a.shape
    count, _ = rows.shape
    out = nl.ndarray((planes, count, width), dtype=a.dtype, buffer=nl.shared_hbm)
    flat = a.reshape((planes, 320, width))
    i_f = nl.arange(64)[None, :]
    for b in nl.affine_range(planes):
        for k in nl.affine_range((count + 127) // 128):
            i_p = k * 128 + nl.arange(128)[:, None]
            index = nl.load(rows[i_p, nl.arange(1)[None, :]], mask=i_p < count)
            nearest = nl.maximum(index, 0) * 1
            found = flat[b, nearest, i_f]
            tile = nl.load(found, mask=i_p < count)
            nl.store(out[b, i_p, i_f], value=tile, mask=i_p < count)
    index = nl.load(rows[0:8, :])
    first = flat[1, index, i_f]
    nl.store(out[0, 0:8, :], value=nl.load(first))
    return out
