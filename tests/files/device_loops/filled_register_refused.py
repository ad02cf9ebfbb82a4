# test: check
# args: a=float32[128,64] n=int32[1,1]
# nki: 0.6
"""A register that is made from a tensor, as only older kernels may."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count, src=n)
    times = nisa.register_alloc(count)  # error[NKI0290]: must be a number or a register or None
    return a  # warning[input-returned]: which nothing writes
