# test: check
# args: a=float32[128,64]
# nki: 0.5
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    reg = nisa.register_alloc(1)
    while reg:
        nl.load(a)
        return a  # error[device-loop-misuse]: return
