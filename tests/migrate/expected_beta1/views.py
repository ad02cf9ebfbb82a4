# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[4, 12]"
# b = "float32[4, 4, 6]"
# ///
"""A dimension that two axes make: a transposition of what each partition holds."""

import nki
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    turned = nl.ndarray((4, 12), dtype=a.dtype, buffer=nl.sbuf)
    turned[0:4, 0:12].reshape((4, 4, 3)).permute((0, 2, 1))[...] = nl.copy(tile[0:4, 0:12].reshape((4, 3, 4)))
    nl.store(out, value=turned)
    pairs = nl.load(b)
    sums = nl.ndarray((4, 2, 3), dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(sums, value=nl.sum(pairs[0:4, 0:4, 0:6].reshape((4, 2, 2, 3, 2)).permute((0, 1, 3, 2, 4)), axis=[3, 4]))
    return out, sums
