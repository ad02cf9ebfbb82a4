# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 256]"
# ///
"""Addresses of blocks that functions of the kernel's own compute."""

import functools

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


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
    sums = nl.ndarray(
        (3, 2, nl.par_dim(128), columns),
        dtype=nl.float32,
        buffer=ncc.psum.alloc(functools.partial(bank_of, first=1)),
    )
    held = nl.ndarray(
        (3, 2, nl.par_dim(128), columns), dtype=a.dtype, buffer=ncc.sbuf.alloc(row_of)
    )
    for i in nl.static_range(3):
        for j in nl.static_range(2):
            held[i, j] = nl.load(a[0:128, 0:columns])
            sums[i, j] = nisa.nc_matmul(held[i, j, 0:128, 0:128], held[i, j])
            held[i, j] = nl.copy(sums[i, j])
            nl.store(out[i, j], value=held[i, j])
    return out
