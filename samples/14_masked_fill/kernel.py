# /// nkic
# kernel = "masked_fill"
# target = "trn2"
# [args]
# x = "float16[200, 3000]"
# lengths = "int32[200]"
# [consts]
# fill = -1.0
# ///
"""Fill each row beyond its length: a mask computed on the chip, and a predicated copy.

The mask is not loaded. GpSimdE writes column numbers, VectorE compares them with a number per
partition, and the predicated copy writes only the elements that the mask selects.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def masked_fill(x, lengths, fill):
    """Return x[m, n] where n < lengths[m], and fill elsewhere. x[M, N]; lengths[M] in int32."""
    M, N = x.shape
    assert lengths.shape == (M,), f"lengths{lengths.shape} must have one element per row, ({M},)"
    assert N <= 2**24, f"N = {N}: float32 counts exactly only to {2**24}"
    P = nl.tile_size.pmax
    y = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)

    # 0, 1, 2 ... on every partition, made once, in float32, the type of VectorE's comparisons.
    columns = nl.ndarray((min(P, M), N), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=columns, pattern=[[1, N]], offset=0, channel_multiplier=0)

    for m in range(0, M, P):
        p = min(P, M - m)
        x_tile = nl.ndarray((p, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[m : m + p, :])
        # An operand per partition must be float32: the DMA converts while it copies.
        length = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=length, src=lengths[m : m + p].reshape((p, 1)))

        # A comparison gives 1.0 or 0.0; a byte is enough to store it.
        beyond = nl.ndarray((p, N), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=beyond, data=columns[0:p, :], op0=nl.greater_equal, operand0=length)
        nisa.tensor_copy_predicated(dst=x_tile, src=fill, predicate=beyond)
        nisa.dma_copy(dst=y[m : m + p, :], src=x_tile)
    return y
