# test: compile
# args: a=float32[128,512] b=float32[128,512]
# emit: sched
"""Two loads on queues of their own, an addition that waits for both, a store that waits for it."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def add(a, b):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
