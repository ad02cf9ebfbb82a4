# test: compile
# args: a=float32[128,8]
"""Host code is never looked at, whatever it does."""
import torch
from somewhere import anything
import nki
import nki.isa as nisa
import nki.language as nl


GLOBAL = torch.zeros(3)


@nki.jit
def copy(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


async def host(x):
    global GLOBAL
    try:
        GLOBAL = await anything(x)
    finally:
        yield GLOBAL


if __name__ == "__main__":
    print(copy(torch.rand(128, 8)), undefined_name)
