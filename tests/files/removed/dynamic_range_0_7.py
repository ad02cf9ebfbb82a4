# test: check
# args: a=float32[128,512]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    for i in nl.dynamic_range(4):  # error[removed-name]: no loop over `nl.dynamic_range` since NKI 0.7
        nisa.register_alloc(i)
    return a
