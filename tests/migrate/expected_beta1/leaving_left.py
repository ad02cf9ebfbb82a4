# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[256, 96]"
# ///
"""`return` in a loop, and not at its end."""

import nki
import nki.language as nl


@nki.jit
def kernel(a, short=True):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(a.shape[0] // 128):
        x = nl.load(a[nl.ds(128 * i, 128), :])
        nl.store(out[nl.ds(128 * i, 128), :], x + 1.0)
        if short:
            return out  # left: a `return` that is not the last statement of a loop
    return out
