# test: check
# args: a=float32[128,64]
"""A decorator is any function of the kernel's."""
import nki
import nki.isa as nisa
import nki.language as nl

def twice(function):
    return lambda n: function(function(n))


@twice
def more(n):
    return n + 1


@nki.jit
def kernel(a):
    n = more(1)
    assert n == 4  # error[assertion-failed]: assertion failed: n == 4
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
