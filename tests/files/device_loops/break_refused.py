# test: check
# args: a=float32[128,64]
# nki: 0.5
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    for i in nl.dynamic_range(4):
        nl.load(a)
        break  # error[device-loop-misuse]: break
    return a
