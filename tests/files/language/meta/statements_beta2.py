# test: check
# args: a=float32[128,64]
# nki: beta2
"""Statements that the first compiled version of NKI lacks."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    for i in range(2):
        pass
    else:  # error@-2[not-in-nki]: `else` on a loop
        pass
    if (n := 3) > 2:  # error[not-in-nki]: `:=`
        pass
    del n  # error[not-in-nki]: `del`
    first, *rest = [1, 2]  # error[not-in-nki]: `*` in a list or tuple
    text = f"{first:03d}"  # error[not-in-nki]: a format specification
    both = [*rest, 1]  # error[not-in-nki]: `*` in a list or tuple
    raise ValueError(text)  # error[not-in-nki]: `raise`
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
