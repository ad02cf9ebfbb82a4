# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "bfloat16[128, 512]"
# b = "bfloat16[128, 512]"
# n = "int32[128, 512]"
# m = "int8[128, 512]"
# ///
"""Results that have their type from a number, and those that are rounded to two types."""

import nki
import nki.language as nl
import numpy as np


def scaled(t):
    return nl.multiply(t, 0.3, dtype=nl.float32)


@nki.jit
def kernel(a, b, n, m):
    out = nl.ndarray((16, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.load(b)
    narrow = nl.ndarray((128, 512), dtype=nl.float8_e4m3, buffer=nl.sbuf)
    narrow[...] = nl.divide(x, y)  # by way of bfloat16, as since then
    nl.store(out[0], value=narrow)
    narrow[...] = x * y
    nl.store(out[1], value=narrow)
    later = nl.exp(x)
    narrow[...] = later
    nl.store(out[2], value=narrow)
    half = nl.ndarray((128, 512), dtype=nl.float16, buffer=nl.sbuf)
    half[...] = nl.add(x, 0.3, dtype=nl.float16)  # float32, so that float16 is the only rounding
    nl.store(out[3], value=half)
    same = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    same[...] = nl.subtract(x, y)
    nl.store(out[4], value=same)
    nl.store(out[5], value=nl.multiply(nl.load(n), 0.5, dtype=nl.float32))
    nl.store(out[6], value=nl.multiply(x, 0.3, dtype=nl.float32))
    nl.store(out[7], value=nl.subtract(1, nl.load(m), dtype=nl.int32))
    nl.store(out[8], value=nl.multiply(x, 3))  # bfloat16: an integer has no fraction
    nl.store(out[9], value=nl.multiply(nl.copy(x, dtype=nl.float16), np.float16(0.3)))
    nl.store(out[10], value=scaled(x))  # of several types, of which float32 stays
    nl.store(out[11], value=scaled(half))
    nl.store(out[12], value=scaled(nl.copy(x, dtype=nl.float32)))
    nl.store(out[13], value=nl.mod(x, 2.0, dtype=nl.float32))
    nl.store(out[14], value=nl.copy(x > 0.5, dtype=nl.bfloat16))
    nl.store(out[15], value=nl.power(y, 2.0, dtype=nl.float32))
    return out
