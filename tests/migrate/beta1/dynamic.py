# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[256, 512]"
# b = "float32[128, 16, 4]"
# starts = "int32[1, 8]"
# ///
"""Tiles and rows that begin where an element of a tile says."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b, starts):
    out = nl.ndarray((128, 8, 4), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((64, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    where = nl.load(starts)
    tile = nl.load(b)
    part = nl.zeros((128, 8, 4), dtype=a.dtype, buffer=nl.sbuf)
    i_p, i_b, i_f = nl.mgrid[0:128, 0:1, 0:4]
    i_r = nl.arange(64)[:, None]
    i_c = nl.arange(512)[None, :]
    for k in nl.affine_range(8):
        part[i_p, k, i_f] = nisa.tensor_copy_dynamic_src(tile[i_p, where[0, k] + 2 + i_b, i_f])
    nisa.tensor_copy_dynamic_dst(dst=part[i_p, where[0, 3], i_f], src=tile[i_p, 1 + i_b, i_f])
    nl.store(rows[i_r, i_c], value=nl.load(a[where[0, 5] + 64 + i_r, i_c]))
    nl.store(out, value=part)
    return out, rows
