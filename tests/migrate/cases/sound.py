# /// nkic
# nki = "0.6"
# [args]
# a = "float32[128, 512]"
# ///
"""Names of the same spelling that are not part of NKI, and code that is of today already."""

import nki
import nki.isa as nisa
import nki.language as nl


class Sizes:
    psum_fmax = 512
    affine_range = range


def dynamic_range(n):
    return range(n)


@nki.jit
def kernel(a):
    tile_size, vector_engine = Sizes(), nisa.engine.vector
    x = nl.ndarray((128, tile_size.psum_fmax), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    for i in dynamic_range(2):
        nisa.memset(dst=x[:, i : i + 1], value=0.0, engine=vector_engine)
    for i in Sizes.affine_range(2):
        nisa.memset(dst=x[:, i : i + 1], value=1.0)

    def body(i):
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)

    nl.fori_loop(0, 2, body)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
