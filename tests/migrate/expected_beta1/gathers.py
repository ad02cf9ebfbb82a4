# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[2, 20, 16, 64]"
# rows = "int32[300, 1]"
# ///
"""Rows of a plane that a computed tile says, some of them hidden by a mask."""

import nki
import nki.language as nl
import nki.isa as nisa


@nki.jit
def kernel(a, rows):
    planes, _, _, width = a.shape
    count, _ = rows.shape
    out = nl.ndarray((planes, count, width), dtype=a.dtype, buffer=nl.shared_hbm)
    flat = a.reshape((planes, 320, width))
    for b in range(planes):
        for k in range((count + 127) // 128):
            index = nl.ndarray((128, 1), dtype=rows.dtype, buffer=nl.sbuf)
            nisa.dma_copy(index[0:min(128, count - k * 128)], rows[nl.ds(k * 128, min(128, count - k * 128)), 0:1])
            nearest = nl.maximum(index, 0) * 1
            found = flat[b].ap([[flat.shape[2], nearest.shape[0]], [1, 64]], vector_offset=nearest, indirect_dim=0)
            tile = nl.ndarray((128, 64), dtype=found.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile[0:min(128, count - k * 128)], flat[b].ap([[flat.shape[2], min(128, count - k * 128)], [1, 64]], vector_offset=nearest[0:min(128, count - k * 128)], indirect_dim=0))
            nl.store(out[b, nl.ds(k * 128, min(128, count - k * 128)), 0:64], value=tile[0:min(128, count - k * 128)])
    index = nl.load(rows[0:8, :])
    first = flat[1].ap([[flat.shape[2], index.shape[0]], [1, 64]], vector_offset=index, indirect_dim=0)
    nl.store(out[0, 0:8, :], value=nl.load(first))
    return out
