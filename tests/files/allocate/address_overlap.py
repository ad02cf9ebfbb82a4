# test: check
# args: a=float32[128,512]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))  # error[address-overlap]: `y` at bytes 1,024 to 3,072 overlaps `x` at bytes 0 to 2,048
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
