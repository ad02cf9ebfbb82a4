# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[4, 12]"
# ///
"""A dimension that two axes make: a transposition of what each partition holds."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    turned = nl.ndarray((4, 12), dtype=a.dtype, buffer=nl.sbuf)
    turned[0:4, 0:12].reshape((4, 4, 3)).permute((0, 2, 1))[...] = nl.copy(tile[0:4, 0:12].reshape((4, 3, 4)))
    nl.store(out, value=turned)
    return out
