# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[300, 700]"
# ///
"""Masks that are bounds, of rows and of columns."""

import math

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(math.ceil(rows / 128)):
        for j in range(math.ceil(columns / 512)):
            tile = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)], a[nl.ds(i * 128, min(128, rows - i * 128)), nl.ds(j * 512, min(512, columns - j * 512))])
            new_tile = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
            nisa.activation(dst=new_tile[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)], op=nl.exp, data=tile[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)])
            tile = new_tile
            double = nl.add(tile[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)], tile[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)])
            nl.store(out[nl.ds(i * 128, min(128, rows - i * 128)), nl.ds(j * 512, min(512, columns - j * 512))], value=double[0:min(128, rows - i * 128), 0:min(512, columns - j * 512)])
    return out
