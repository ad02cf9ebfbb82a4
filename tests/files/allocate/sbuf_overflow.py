# test: check
# args: a=float32[128,40000]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    # error@+1[NKI0501]: `y` in SBUF: it takes 160,000 bytes per partition, 160,000 bytes are in use, and trn2 has 212,728 bytes
    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
