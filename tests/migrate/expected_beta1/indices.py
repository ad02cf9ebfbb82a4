# /// nkic
# kernel = "kernel"
# nki = "0.7"
# grid = "2x1"
# [args]
# a = "float32[256, 1024]"
# ///
"""Index expressions: arange, mgrid and its fields, strides, single columns, loop variables."""

import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((256, 1024), dtype=a.dtype, buffer=nl.shared_hbm)
    for k in range(2):
        tile = nl.load(a[nl.ds(nl.program_id(0) * 128, 128), nl.ds(k * 512, 512)])
        even = nl.copy(tile[0:128, 0:511:2])
        odd = nl.copy(tile[0:128, 1:512:2])
        first = nl.copy(tile.ap([[tile.shape[1], 128], [0, 256]]))
        even[0:128, 0:256] = nl.add(even, odd)
        nl.store(out[nl.ds(nl.program_id(0) * 128, 128), nl.ds(k * 512, 256)], value=even)
        nl.store(out[nl.ds(nl.program_id(0) * 128, 128), nl.ds(k * 512 + 256, 256)], value=nl.multiply(odd, first))
        nl.store(out[nl.ds(nl.program_id(0) * 128, 128), nl.ds(k * 512, 512)], value=tile)
    return out
