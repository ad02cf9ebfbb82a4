# test: check
# args: n=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(nl.load(n))
    for _ in range(i):  # error[register-value]: the value of a scalar is known only on the device
        pass
    return n
