# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[300, 64]"
# ///
"""Blocks that are read as another type, and results with the sizes of what they are assigned to."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows, width = a.shape
    count = (rows + 127) // 128
    out = nl.ndarray((rows, width * 2), dtype=nl.uint16, buffer=nl.shared_hbm)
    sums = nl.ndarray((rows, 4), dtype=nl.uint16, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((nl.par_dim(128), width), dtype=a.dtype, buffer=nl.sbuf) for i in range(count)]
    totals = [nl.ndarray((nl.par_dim(128), 1), dtype=a.dtype, buffer=nl.sbuf) for i_2 in range(count)]
    marks = nl.ndarray((nl.par_dim(128), count, 1), dtype=nl.float32, buffer=nl.sbuf)
    halves = nl.ndarray((nl.par_dim(128), width), dtype=nl.bfloat16, buffer=nl.sbuf)
    for k in range(count):
        size = min(128, rows - k * 128)
        nisa.dma_copy(tiles[k][:size, :], a[nl.ds(k * 128, size), :])
        nisa.dma_copy(marks[:size, k, :], a[nl.ds(k * 128, size), 3:4])
        halves[:size, :] = squared(tiles, totals, k, size)
        tiles[k][:size, :] = nl.add(tiles[k][:size, :], halves[:size, :])
    for k in range(count):
        size = min(128, rows - k * 128)
        nl.store(out[nl.ds(k * 128, size), :], value=tiles[k].view(nl.uint16)[:size, :])
        nl.store(sums[nl.ds(k * 128, size), 0:2], value=totals[k].view(nl.uint16)[:size, 0:2])
        nl.store(sums[nl.ds(k * 128, size), 2:4], value=marks.view(nl.uint16)[:size, k, :])
    return out, sums


def squared(tiles, totals, k, size):
    half = nl.ndarray((nl.par_dim(128), 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    half_tile = nl.ndarray(half[:size, :].shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(
        dst=half_tile, op=nl.square, data=tiles[k][:size, :], reduce_op=nl.add, reduce_res=totals[k][:size, :]
    )
    half[:size, :] = half_tile
    return half[:size, :]
