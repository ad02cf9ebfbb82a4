# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[512, 256]"
# ///
"""Block dimensions, and decorators of Beta 1."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.trace
def load_all(a):
    tiles = nl.ndarray((4, nl.par_dim(128), 256), dtype=a.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(4):
        tiles[i] = nl.load(a[i * 128 : (i + 1) * 128, :])
    return nl.add(tiles[0], tiles[3, :, :])


@nki.benchmark(warmup=5, iters=10)
def kernel(a):
    out = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    sums = nl.zeros((2, 2, nl.par_dim(128), 256), dtype=nl.float32, buffer=nl.sbuf)
    i_p, i_f = nl.mgrid[0:128, 0:256]
    for i in nl.affine_range(2):
        sums[i, 1, i_p, i_f] = nl.load(a[i * 128 + i_p, i_f])
        sums[i, 1, 0:128, 0:256] += sums[i, 0]
    nl.store(out, value=nl.add(sums[1, 1], load_all(a)))
    return out
