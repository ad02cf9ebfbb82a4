# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 64]"
# ///
"""A print writes no tile."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    nl.device_print("x", x)
    nl.store(out, nl.multiply(x, 2.0))
    return out
