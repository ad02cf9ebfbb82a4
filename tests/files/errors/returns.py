# test: check
# args: a=float32[128,512]
"""Each wrong output is reported where it is returned."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    return (
        tile,  # error[bad-return]: output 0 is float32[128, 512] in sbuf
        len(a.shape),  # error[bad-return]: output 1 is 2, not a tensor
    )
