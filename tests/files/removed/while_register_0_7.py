# test: check
# args: a=float32[128,512]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    r = nisa.register_alloc(1)
    while r:  # error[removed-name]: there is no `while` loop over a register since NKI 0.7
        nisa.register_move(r, 0)
    return a
