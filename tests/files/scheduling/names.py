# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf, name="tile")
    assert x.name == "tile" and x[:, 0:4].name == "tile"
    nisa.dma_copy(dst=x, src=a, name="load")
    first = nisa.reciprocal(dst=x, data=x, name=None)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1).depends_on(first)
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm, "result")
    nisa.dma_copy(out, x)
    return out
