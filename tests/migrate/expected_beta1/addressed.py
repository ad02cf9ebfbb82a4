# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 256]"
# ///
"""Addresses of blocks that functions of the kernel's own compute."""

import functools

import nki
import nki.compiler as ncc
import nki.isa as nisa
import nki.language as nl


def bank_of(idx, pdim_size, fdim_size, first=0):
    i, j = idx
    return (first + 2 * i + j) % 8, 0, 0


def row_of(idx, pdim_size, fdim_size):
    i, j = idx
    return 0, ((i + j) % 3) * fdim_size


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray((3, 2, 128, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    sums = [[nl.ndarray( (nl.par_dim(128), columns), dtype=nl.float32, buffer=nl.psum, address=(lambda bank, partition, byte: (partition, bank * 2048 + byte))(*functools.partial(bank_of, first=1)(idx=(i_2, j_2), pdim_size=128, fdim_size=columns * 4)), ) for j_2 in range(2)] for i_2 in range(3)]
    held = [[nl.ndarray( (nl.par_dim(128), columns), dtype=a.dtype, buffer=nl.sbuf, address=row_of(idx=(i_3, j_3), pdim_size=128, fdim_size=columns * 4)) for j_3 in range(2)] for i_3 in range(3)]
    for i in range(3):
        for j in range(2):
            nisa.dma_copy(held[i][j][...], a[0:128, 0:columns])
            nisa.nc_matmul(sums[i][j][...], held[i][j][0:128, 0:128], held[i][j], accumulate=False)
            held[i][j][...] = nl.copy(sums[i][j])
            nl.store(out[i, j], value=held[i][j])
    return out
