# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "bfloat16[128, 512]"
# b = "bfloat16[128, 512]"
# n = "int32[128, 512]"
# ///
"""Results that were rounded once, to the type of what they are assigned to."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b, n):
    out = nl.ndarray((6, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.load(b)
    narrow = nl.ndarray((128, 512), dtype=nl.float8_e4m3, buffer=nl.sbuf)
    narrow[...] = nl.divide(x, y)
    nl.store(out[0], value=narrow)
    narrow[...] = x * y
    nl.store(out[1], value=narrow)
    later = nl.exp(x)
    narrow[...] = later
    nl.store(out[2], value=narrow)
    half = nl.ndarray((128, 512), dtype=nl.float16, buffer=nl.sbuf)
    half[...] = nl.add(x, 0.3)
    nl.store(out[3], value=half)
    same = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    same[...] = nl.subtract(x, y)  # of the same type: nothing is said
    nl.store(out[4], value=same)
    nl.store(out[5], value=nl.multiply(nl.load(n), 0.5))
    return out
