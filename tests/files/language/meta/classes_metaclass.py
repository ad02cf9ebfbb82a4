# test: check
# args: a=float32[128,64]
# nki: 0.6
"""Classes have bases and nothing else in their header, and Python asks for every attribute."""
import nki
import nki.isa as nisa
import nki.language as nl

class Fancy(nl.NKIObject, metaclass=type):  # error[not-in-nki]: a class with keywords in its header
    def __getattribute__(self, name):  # error[hidden-attribute]: `__getattribute__`
        return 1


@nki.jit
def kernel(a):
    fancy = Fancy()
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
