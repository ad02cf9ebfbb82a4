# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[8, 65, 8192]"
# ///
"""More tiles in use at once than SBUF holds, which Beta 1's compiler kept in HBM by itself."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):  # left: SBUF has no room for all tiles of this kernel
    blocks, rows, columns = a.shape
    out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    parts = [nl.ndarray((nl.par_dim(65), columns), dtype=a.dtype, buffer=nl.sbuf) for i in range(8)]
    total = nl.zeros((65, columns), dtype=a.dtype, buffer=nl.sbuf)
    for k in range(8):
        parts[k][...] = nl.load(a[k])
    for k in range(8):
        total[...] = nl.add(total, parts[7 - k])
    nl.store(out, value=total)
    return out
