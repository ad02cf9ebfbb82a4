# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[300, 64]"
# ///
"""Blocks that are read as another type, and results with the sizes of what they are assigned to."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    rows, width = a.shape
    count = (rows + 127) // 128
    out = nl.ndarray((rows, width * 2), dtype=nl.uint16, buffer=nl.shared_hbm)
    sums = nl.ndarray((rows, 4), dtype=nl.uint16, buffer=nl.shared_hbm)
    tiles = nl.ndarray((count, nl.par_dim(128), width), dtype=a.dtype, buffer=nl.sbuf)
    totals = nl.ndarray((count, nl.par_dim(128), 1), dtype=a.dtype, buffer=nl.sbuf)
    marks = nl.ndarray((count, nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
    halves = nl.ndarray((nl.par_dim(128), width), dtype=nl.bfloat16, buffer=nl.sbuf)
    for k in range(count):
        size = min(128, rows - k * 128)
        tiles[k, :size, :] = nl.load(a[nl.ds(k * 128, size), :])
        marks[k, :size, :] = nl.load(a[nl.ds(k * 128, size), 3:4])
        halves[:size, :] = squared(tiles, totals, k, size)
        tiles[k, :size, :] = nl.add(tiles[k, :size, :], halves[:size, :])
    for k in range(count):
        size = min(128, rows - k * 128)
        nl.store(out[nl.ds(k * 128, size), :], value=tiles.view(nl.uint16)[k, :size, :])
        nl.store(sums[nl.ds(k * 128, size), 0:2], value=totals.view(nl.uint16)[k, :size, 0:2])
        nl.store(sums[nl.ds(k * 128, size), 2:4], value=marks.view(nl.uint16)[k, :size, :])
    return out, sums


def squared(tiles, totals, k, size):
    half = nl.ndarray((nl.par_dim(128), 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    half[:size, :] = nisa.activation_reduce(
        op=nl.square, data=tiles[k, :size, :], reduce_op=nl.add, reduce_res=totals[k, :size, :]
    )
    return half[:size, :]
