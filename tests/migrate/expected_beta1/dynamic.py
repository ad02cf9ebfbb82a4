# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[256, 512]"
# b = "float32[128, 16, 4]"
# starts = "int32[1, 8]"
# ///
"""Tiles and rows that begin where an element of a tile says."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b, starts):
    out = nl.ndarray((128, 8, 4), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((64, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    where = nl.load(starts)
    tile = nl.load(b)
    part = nl.zeros((128, 8, 4), dtype=a.dtype, buffer=nl.sbuf)
    for k in range(8):
        nisa.tensor_copy(part[0:128, k:k + 1, 0:4], tile.ap([[tile.shape[1] * tile.shape[2], 128], [tile.shape[2], 1], [1, 4]], offset=2 * tile.shape[2], scalar_offset=where[0:1, k:k + 1], indirect_dim=1))
    nisa.tensor_copy(dst=part.ap([[part.shape[1] * part.shape[2], 128], [1, 1], [1, 4]], scalar_offset=where[0:1, 3:4], indirect_dim=1), src=tile[0:128, 1:2, 0:4])
    nl.store(rows[0:64, 0:512], value=nl.load(a.ap([[a.shape[1], 64], [1, 512]], offset=64 * a.shape[1], scalar_offset=where[0:1, 5:6], indirect_dim=0)))
    nl.store(out, value=part)
    return out, rows
