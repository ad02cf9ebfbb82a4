# /// nkic
# kernel = "gate"
# target = "trn2"
# [args]
# a = "float32[128, 32768]"
# b = "float32[128, 32768]"
# ///
"""A gate, silu(a) * b, in strips of columns: how wide, in how many buffers, in which type?

Three choices are marked. `nkic tune kernel.py task.toml` tries them all (docs/tune.md).
"""

import nki
import nki.isa as nisa
import nki.language as nl

COLUMNS = 2048  # tune: 2048..32768*2
BUFFERS = 1  # tune: 1..3
TYPE = nl.float32  # tune: nl.float32, nl.bfloat16


@nki.jit
def gate(a, b):
    """Return silu(a) * b; a and b are [M, N], M a multiple of 128 and N of COLUMNS."""
    M, N = a.shape
    P = nl.tile_size.pmax
    assert M % P == 0 and N % COLUMNS == 0, f"a{a.shape} must consist of [{P}, {COLUMNS}] strips"
    out = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)

    # A ring: strip i uses the tiles of strip i - BUFFERS, and so waits until they are free.
    ring = [
        [nl.ndarray((P, COLUMNS), dtype=TYPE, buffer=nl.sbuf) for _ in range(3)]
        for _ in range(BUFFERS)
    ]
    strips = [(m, n) for m in range(0, M, P) for n in range(0, N, COLUMNS)]
    for i, (m, n) in enumerate(strips):
        x, y, z = ring[i % BUFFERS]
        nisa.dma_copy(dst=x, src=a[m : m + P, n : n + COLUMNS])
        nisa.dma_copy(dst=y, src=b[m : m + P, n : n + COLUMNS])
        nisa.activation(dst=z, op=nl.silu, data=x)
        nisa.tensor_tensor(dst=z, data1=z, data2=y, op=nl.multiply)
        nisa.dma_copy(dst=out[m : m + P, n : n + COLUMNS], src=z)
    return out
