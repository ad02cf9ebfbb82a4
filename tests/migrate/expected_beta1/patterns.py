# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 64]"
# rows = "int32[128, 1]"
# ///
"""Patterns: iota, affine_select, memset, grids of several axes, rows that a tile says."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, rows):
    out = nl.ndarray((128, 3, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:128, 0:64])
    lower = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    nisa.affine_select(dst=lower, pattern=[[-1, 64]], offset=3, channel_multiplier=2, on_true_tile=tile, on_false_value=-1.0, cmp_op=nl.greater_equal)
    nl.store(out[0:128, 0, 0:64], value=lower)
    numbers = nl.ndarray((128, 62, 3), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=numbers, pattern=[[5, 62], [1, 3]], offset=0, channel_multiplier=0)
    windows = nl.max(tile.ap([[tile.shape[1], 128], [1, 62], [1, 3]]), axis=[2])
    filled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=filled, value=-3.4028234663852886e+38)
    filled[0:128, 0:62] = nl.add(windows, nl.sum(numbers, axis=[2]))
    nl.store(out[0:128, 1, 0:64], value=filled)
    which = nl.load(rows)
    nl.store(out[0:128, 2, 0:64], value=nl.load(a.ap([[a.shape[1], which.shape[0]], [1, 64]], vector_offset=which, indirect_dim=0)))
    return out
