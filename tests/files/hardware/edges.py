# test: check
# args: a=float32[128,64]
"""An order that the kernel asks for does not lead out of a device loop."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    z = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    load = nisa.dma_copy(dst=x, src=a)
    inside = []

    def turn(i):
        first = nisa.tensor_copy(dst=y, src=x).depends_on(load)
        inside.append(nisa.tensor_copy(dst=y, src=x).depends_on(first))

    nl.fori_loop(0, 3, turn)
    # error@+1[NKI0282]: memset is ordered after tensor_copy, which is inside a device loop, but is
    nisa.memset(dst=z, value=0.0).depends_on(inside[0])

    def another(i):
        # error@+1[NKI0282]: tensor_scalar is ordered after tensor_copy
        nisa.tensor_scalar(dst=z, data=z, op0=nl.add, operand0=1.0).depends_on(inside[0])

    nl.fori_loop(0, 3, another)
    nisa.tensor_tensor(dst=y, data1=y, data2=z, op=nl.add)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
