# test: check
# args: a=float32[128,64]
"""Ranges and the like are not bases; lists and dicts are."""
import nki
import nki.isa as nisa
import nki.language as nl

class Rows(list):
    def total(self):
        return sum(self)


class Steps(range):  # error[wrong-base]: a class of a kernel cannot inherit from `range`
    pass


@nki.jit
def kernel(a):
    rows = Rows([1, 2])
    assert rows.total() == 3
    steps = Steps(3)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
