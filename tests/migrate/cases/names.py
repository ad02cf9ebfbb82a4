# /// nkic
# nki = "0.4"
# [args]
# a = "float32[128, 512]"
# ///
"""Names that were replaced, comments and layout around them."""

import nki
import nki.isa as nisa
import nki.language as nl
from nki.isa import gpsimd_engine, tensor_copy
from nki.language import sequential_range


@nki.jit
def kernel(a):
    x = nl.ndarray((128, nl.tile_size.psum_fmax), dtype=nl.float32, buffer=nl.sbuf)
    assert nl.tile_size.total_available_sbuf_size > 2048  # per partition
    nisa.dma_copy(dst=x, src=a)
    for i in nl.affine_range(2):  # columns
        nisa.memset(
            dst=x[:, i : i + 1],
            value=0.0,
            engine=nisa.vector_engine,  # not the scalar one
        )
    for i in sequential_range(1, 3):
        nisa.memset(x[:, i : i + 1], 1.0, engine=gpsimd_engine)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    tensor_copy(dst=y, src=x)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
