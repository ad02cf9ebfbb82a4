# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[4, 12]"
# b = "float32[4, 4, 6]"
# ///
"""A dimension that two axes make: a transposition of what each partition holds."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    turned = nl.ndarray((4, 12), dtype=a.dtype, buffer=nl.sbuf)
    i_p = nl.arange(4)[:, None, None]
    i_r = nl.arange(3)[None, :, None]
    i_c = nl.arange(4)[None, None, :]
    turned[i_p, 3 * i_c + i_r] = nl.copy(tile[i_p, i_r * 4 + i_c])
    nl.store(out, value=turned)
    pairs = nl.load(b)
    sums = nl.ndarray((4, 2, 3), dtype=a.dtype, buffer=nl.shared_hbm)
    j_p, j_r, j_a, j_c, j_b = nl.mgrid[0:4, 0:2, 0:2, 0:3, 0:2]
    nl.store(sums, value=nl.sum(pairs[j_p, 2 * j_r + j_a, j_c * 2 + j_b], axis=[2, 4]))
    return out, sums
