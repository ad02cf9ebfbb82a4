# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[4, 64, 256]"
# [consts]
# count = 20000
# ///
"""Masks over a flattened index, which leave whole rows and a part of one."""

import nki
import nki.language as nl
import nki.isa as nisa


@nki.jit
def kernel(a, count):
    out = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    rows, columns = a.shape[1:]
    for k in range(4):
        # Where nothing is computed.
        nothing = nl.zeros((rows, columns), dtype=nl.bfloat16)
        nl.store(out[k], value=nothing)
        whole, rest = divmod(min(max(count - k * rows * columns, 0), rows * columns), columns)
        x = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.sbuf)
        if whole > 0:
            nisa.dma_copy(x[0:whole, 0:columns], a[k, 0:whole, 0:columns])
        if rest > 0:
            nisa.dma_copy(x[whole:whole + 1, 0:rest], a[k, whole:whole + 1, 0:rest])
        y = nl.ndarray((rows, columns), dtype=nl.bfloat16, buffer=nl.sbuf)
        if whole > 0:
            nisa.dma_copy(y[0:whole, 0:columns], a[3 - k, 0:whole, 0:columns])
        if rest > 0:
            nisa.dma_copy(y[whole:whole + 1, 0:rest], a[3 - k, whole:whole + 1, 0:rest])
        # The sum of two.
        if whole + rest > 0:
            total = nl.add(x, y)
        if whole > 0:
            nl.store(out[k, 0:whole, 0:columns], value=total[0:whole, 0:columns])
        if rest > 0:
            nl.store(out[k, whole:whole + 1, 0:rest], value=total[whole:whole + 1, 0:rest])
    return out
