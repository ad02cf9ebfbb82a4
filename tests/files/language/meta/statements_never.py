# test: check
# args: a=float32[128,64]
# nki: 0.6
"""Statements that no version of NKI has; one run reports them all."""
import nki
import nki.isa as nisa
import nki.language as nl

COUNT = 0


@nki.jit
def kernel(a):
    global COUNT  # error[not-in-nki]: `global`
    COUNT = 1
    try:  # error[not-in-nki]: `try`
        COUNT = 2
    except ValueError:
        pass
    with open("log") as log:  # error[unknown-name]: `open` is not available
        pass
    n = eval("1")  # error[unknown-name]: `eval` is not available
    d = COUNT.__dict__  # error[hidden-attribute]: `__dict__`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
