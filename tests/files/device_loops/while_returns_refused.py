# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    def body(r):
        nisa.register_move(r, 0)

    nl.while_loop(nisa.register_alloc(1), body)  # error[loop-result]: must return a register, not None
    return a
