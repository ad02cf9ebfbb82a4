# /// nkic
# kernel = "gated_exponential"
# target = "trn2"
# [args]
# a = "float32[200, 1536]"
# b = "float32[200, 1536]"
# ///
"""Higher-level functions: nki.language.

nl.load, nl.store, nl.exp, nl.sum and arithmetic on tiles allocate their result and choose the
instruction. They define what is computed; nki.isa defines how. Start with them, and replace a
line by an instruction where it is worthwhile: `nl.exp` and `nl.sum` below are one
nisa.activation with a reduce_res in 07_softmax.
"""

import nki
import nki.language as nl


@nki.jit
def gated_exponential(a, b):
    """Return exp((a + b) / 2) * a - b, and the sum of the exponentials of each row, for a, b[M, N].

    Two results: [M, N] and [M, 1].
    """
    assert a.shape == b.shape, f"a{a.shape} and b{b.shape} must have the same shape"
    M, N = a.shape
    y = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    totals = nl.ndarray((M, 1), dtype=nl.float32, buffer=nl.shared_hbm)

    for m in range(0, M, nl.tile_size.pmax):
        end = min(M, m + nl.tile_size.pmax)
        a_tile = nl.load(a[m:end, :])
        b_tile = nl.load(b[m:end, :])
        c = a_tile + b_tile
        gate = nl.exp(c * 0.5)
        nl.store(y[m:end, :], gate * a_tile - b_tile)
        nl.store(totals[m:end, :], nl.sum(gate, axis=1, keepdims=True))
    return y, totals
