# test: check
# args: a=float32[128,512]
# nki: beta2
"""In NKI 0.2 nl.add is an operator and no function."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.add)
    x = nl.add(x, x)  # error[needs-profile]: NKI beta2 has no function `nl.add`
    return x
