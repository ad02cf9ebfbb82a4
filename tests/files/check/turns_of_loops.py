# test: check
# args: a=float32[128,512]
"""Only one turn of the loops is wrong: the message names its loop variables (see the unit test)."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    for i in range(4):
        for width in (128, 256):
            nisa.tensor_copy(dst=x[:, i * 128 : i * 128 + width], src=x[:, 0:width])  # error[index-out-of-bounds]: slice 384:640
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
