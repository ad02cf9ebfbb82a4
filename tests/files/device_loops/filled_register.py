# test: check
# args: a=float32[128,64] n=int32[1,1]
# nki: 0.4
"""A register that is made from a tensor, as kernels until NKI 0.5 may."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=count, src=n)
    nisa.dma_copy(dst=x, src=a)
    for i in nl.dynamic_range(0, nisa.register_alloc(count)):
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1)
    nisa.register_alloc(x)  # error[NKI0304]: `src` has 8192 elements, but must have 1
    nisa.dma_copy(dst=out, src=x)
    return out
