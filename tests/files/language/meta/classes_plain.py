# test: check
# args: a=float32[128,64]
# nki: beta2
"""The first compiled version of NKI has classes with NKIObject as base, and no properties."""
import nki
import nki.isa as nisa
import nki.language as nl

class Plain:  # error[not-in-nki]: a class without base
    n: int = 1


class Sized(nl.NKIObject):
    n: int = 1

    @property
    def twice(self):  # error[not-in-nki]: a property
        return 2 * self.n


@nki.jit
def kernel(a):
    plain = Plain()
    sized = Sized().twice
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
