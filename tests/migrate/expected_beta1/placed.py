# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[320, 128]"
# b = "float32[128, 256]"
# ///
"""Blocks that loops count, in the way of a program that writes kernels; masks with a minus."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((320, 256), dtype=np.float32, buffer=nl.shared_hbm)
    right = nl.ndarray((nl.par_dim(128), 256), dtype=np.float32, buffer=nl.sbuf)
    # where the rows end, nothing is loaded
    nisa.dma_copy(right[0:128, 0:256], b[0:128, 0:256])
    for i in range(3):
        # one for each part of the rows
        left = nl.ndarray((nl.par_dim(128), 128), dtype=np.float32, name="left", buffer=nl.sbuf)
        nisa.dma_copy(
            left[0:min(128, 320 - 128 * i), 0:128], a[nl.ds(128 * i, min(128, 320 - 128 * i)), 0:128])
        found = nl.ndarray((nl.par_dim(128), 2, 128), dtype=np.float32, buffer=nl.sbuf)
        for j in range(2):
            sums = nl.ndarray((nl.par_dim(128), 128), dtype=np.float32, buffer=nl.psum)
            nisa.nc_matmul(
                sums[0:128, 0:128], nl.copy(nl.transpose(left[0:128, 0:128])),
                right[0:128, nl.ds(128 * j, 128)])
            nisa.tensor_scalar(
                dst=found[0:128, j, 0:128], data=sums[0:128, 0:128],
                op0=nl.multiply,
                operand0=0.5,
            )
        for j in range(2):
            nl.store(
                out[nl.ds(128 * i, min(128, 320 - 128 * i)), nl.ds(128 * j, 128)],
                value=found[0:min(128, 320 - 128 * i), j, 0:128],
            )
    return out


@nki.jit
def kernel_of_the_same(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.load(a[0:128, :])
    twice = nl.ndarray(rows.shape, dtype=rows.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(twice, rows, nl.add, 1.0)
    nl.store(out[0:128, :], value=twice)
    nl.store(out[128:256, :], value=twice)
    nl.store(out[256:320, :], value=twice[0:64, :])
    return out
