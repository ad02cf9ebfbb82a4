# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "bfloat16[128, 512]"
# m = "int8[128, 512]"
# ///
"""What was rounded once, and no call says so."""

import nki
import nki.language as nl


def doubled(t):
    return t * 2  # left: a number made this int32, and it would now be int8


@nki.jit
def kernel(a, m):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    total = nl.zeros((128, 512), dtype=nl.float8_e4m3, buffer=nl.sbuf)
    total[...] += x  # left: this was rounded to float8_e4m3 once
    wide = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    wide[...] += x
    wide[...] += doubled(nl.load(m))
    wide[...] += doubled(x)
    nl.store(out, value=nl.add(total, wide))
    return out
