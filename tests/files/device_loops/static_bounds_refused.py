# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    for i in range(nisa.register_alloc(2)):  # error[register-value]: register
        pass
    return a
