# test: check
# nki: 0.5
# args: a=float32[128,64]
"""tensor_scalar_reduce keeps its result in the accumulators from NKI 0.6 on."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    # error@+2[NKI0245]: `reduce_res` cannot be omitted before NKI 0.6
    nisa.tensor_scalar_reduce(
        dst=x, data=x, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=None
    )
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
