# test: check
# args: a=float32[128,4096]
"""A transfer in bit-reversed order: more dimensions than an access pattern holds."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    pairs = [[2048 >> i, 2] for i in range(10)][::-1]
    out = nl.ndarray((128, 4096), dtype=nl.float32, buffer=nl.shared_hbm)
    reversed_bits = a.ap([[4096, 128], *pairs, [1, 4]], offset=0)
    nisa.dma_copy(dst=out, src=reversed_bits)  # error[access-pattern]: `src` needs 12 dimensions; the limit is 8
    return out
