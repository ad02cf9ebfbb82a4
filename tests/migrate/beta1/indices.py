# /// nkic
# kernel = "kernel"
# nki = "beta1"
# grid = "2x1"
# [args]
# a = "float32[256, 1024]"
# ///
"""Index expressions: arange, mgrid and its fields, strides, single columns, loop variables."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((256, 1024), dtype=a.dtype, buffer=nl.shared_hbm)
    ix = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    iy = nl.arange(512)[None, :]  # columns
    grid = nl.mgrid[0:128, 0:512]
    i_p, i_f = nl.mgrid[0:128, 0:256]
    for k in nl.affine_range(2):
        tile = nl.load(a[ix, k * 512 + iy])
        even = nl.copy(tile[i_p, 2 * i_f])
        odd = nl.copy(tile[i_p, i_f * 2 + 1])
        first = nl.copy(tile[i_p, 0])
        even[i_p, i_f] = nl.add(even, odd)
        nl.store(out[nl.program_id(0) * 128 + i_p, k * 512 + i_f], value=even)
        nl.store(out[nl.program_id(0) * 128 + i_p, k * 512 + 256 + i_f], value=nl.multiply(odd, first))
        nl.store(out[nl.program_id(0) * 128 + grid.p, k * 512 + grid.x], value=tile)
    return out
