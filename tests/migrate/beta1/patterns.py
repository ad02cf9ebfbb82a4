# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 64]"
# rows = "int32[128, 1]"
# ///
"""Patterns: iota, affine_select, memset, grids of several axes, rows that a tile says."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, rows):
    out = nl.ndarray((128, 3, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(a[i_p, i_f])
    lower = nisa.affine_select(pred=(2 * i_p + 3 >= i_f), on_true_tile=tile, on_false_value=-1.0)
    nl.store(out[i_p, 0, i_f], value=lower)
    i_p, i_w, i_k = nl.mgrid[0:128, 0:62, 0:3]
    numbers = nisa.iota(5 * i_w + i_k, dtype=nl.float32)
    windows = nl.max(tile[i_p, i_w + i_k], axis=[2])
    filled = nisa.memset(shape=(128, 64), value=nl.fp32.min, dtype=nl.float32)
    filled[0:128, 0:62] = nl.add(windows, nl.sum(numbers, axis=[2]))
    nl.store(out[0:128, 1, 0:64], value=filled)
    which = nl.load(rows)
    i_f = nl.arange(64)[None, :]
    nl.store(out[0:128, 2, 0:64], value=nl.load(a[which, i_f]))
    return out
