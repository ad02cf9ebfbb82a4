# test: check
# args: a=float32[128,64]
# nki: 0.6
"""A kernel has no generators and no coroutines."""
import nki
import nki.isa as nisa
import nki.language as nl

def numbers():
    yield 1  # error[not-in-nki]: `yield`


async def later():  # error[not-in-nki]: `async`
    return 1


@nki.jit
def kernel(a):
    first = numbers()
    second = later()
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
