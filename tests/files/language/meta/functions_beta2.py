# test: check
# args: a=float32[128,64]
# nki: beta2
"""Forms of functions that the first compiled version of NKI lacks."""
import nki
import nki.isa as nisa
import nki.language as nl

def many(*values):  # error[not-in-nki]: `*args` or `**kwargs`
    return len(values)


@nki.jit
def kernel(a):
    def inner(n):  # error[not-in-nki]: a function inside a function
        return n

    twice = lambda n: 2 * n  # error[not-in-nki]: `lambda`
    squares = [n * n for n in range(3)]  # error[not-in-nki]: a comprehension
    count = many(*squares)  # error[not-in-nki]: `*` or `**` in a call
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
