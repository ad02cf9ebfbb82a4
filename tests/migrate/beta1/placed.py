# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[320, 128]"
# b = "float32[128, 256]"
# ///
"""Blocks that loops count, in the way of a program that writes kernels; masks with a minus."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((320, 256), dtype=np.float32, buffer=nl.shared_hbm)
    right = nl.ndarray((nl.par_dim(128), 256), dtype=np.float32, buffer=nl.sbuf)
    # one for each part of the rows
    left = nl.ndarray((3, nl.par_dim(128), 128), dtype=np.float32, name="left", buffer=nl.sbuf)
    sums = nl.zeros((2, 3, nl.par_dim(128), 128), dtype=np.float32, buffer=nl.psum, lazy_initialization=True)
    found = nl.ndarray((3, 2, nl.par_dim(128), 128), dtype=np.float32, buffer=nl.sbuf)
    # where the rows end, nothing is loaded
    i_p = nl.arange(128)[:, None]
    right[i_p, nl.arange(256)[None, :]] = nl.load(b[i_p, nl.arange(256)[None, :]], mask=None)
    for i in nl.affine_range(3):
        left[i, i_p, nl.arange(128)[None, :]] = nl.load(
            a[128 * i + i_p, nl.arange(128)[None, :]], mask=-128 * i + -1 * i_p + 319 >= 0
        )
        for j in nl.affine_range(2):
            sums[j, i, i_p, nl.arange(128)[None, :]] += nl.matmul(
                left[i, i_p, nl.arange(128)[None, :]],
                right[nl.arange(128)[:, None], 128 * j + nl.arange(128)[None, :]],
            )
            found[i, j, i_p, nl.arange(128)[None, :]] = nisa.tensor_scalar(
                data=sums[j, i, i_p, nl.arange(128)[None, :]],
                op0=np.multiply,
                operand0=np.dtype(np.float32).type(0.5),
                mask=None,
            )
        for j in nl.affine_range(2):
            nl.store(
                out[128 * i + i_p, 128 * j + nl.arange(128)[None, :]],
                value=found[i, j, i_p, nl.arange(128)[None, :]],
                mask=-128 * i + -1 * i_p + 319 >= 0,
            )
    return out


@nki.jit
def kernel_of_the_same(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.load(a[0:128, :])
    twice = nisa.tensor_scalar(rows, nl.add, 1.0)
    nl.store(out[0:128, :], value=twice)
    nl.store(out[128:256, :], value=twice)
    nl.store(out[256:320, :], value=twice[0:64, :])
    return out
