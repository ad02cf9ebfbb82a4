# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    reg = nisa.register_alloc(1)
    if reg:  # error[register-value]: known only on the device
        return a
    return a
