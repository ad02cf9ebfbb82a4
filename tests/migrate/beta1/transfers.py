# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[1, 64]"
# ///
"""Numbers and tiles that are assigned at partitions where no engine begins."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((16, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.zeros((16, 64), dtype=a.dtype, buffer=nl.sbuf)
    row = nl.load(a)
    for k in nl.static_range(4):
        tile[k, k + 1] = 2 * k  # one element
    tile[5:7, 0:64] = 1.5
    tile[8:9, 0:32] = row[:, 32:64]
    tile[0:1, 16:48] = row[:, 32:64]
    nl.store(out, value=tile)
    return out
