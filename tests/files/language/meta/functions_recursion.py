# test: check
# args: a=float32[128,64]
"""Recursion has a limit, and the message names the calls."""
import nki
import nki.isa as nisa
import nki.language as nl

def endless(n):
    return endless(n + 1)  # error[too-deep]: functions call each other, or values nest, to a depth of more than 900


@nki.jit
def kernel(a):
    n = endless(0)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
