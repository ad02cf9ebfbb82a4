# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[256, 96]"
# ///
"""`return` in a loop: Beta 1 ends the function after all iterations."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(a.shape[0] // 128):
        for j in range(2):
            x = nl.load(a[nl.ds(128 * i, 128), nl.ds(48 * j, 48)])
            nl.store(out[nl.ds(128 * i, 128), nl.ds(48 * j, 48)], x + 1.0)
    # all of it
    return out
